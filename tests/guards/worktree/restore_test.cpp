// Goal: a restore gives exactly the snapshot back, or changes nothing; and what the exclusion list names is never
// touched. Method: real files, and the steps between which something goes wrong.
#include "guards/worktree/prune.hpp"
#include "guards/worktree/restore_fixture.hpp"

#include <algorithm>

namespace holdfast::guards::worktree {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Restoring, ANewWorktreeIsTheSnapshot) {
    const auto restored = restore_to_new(repository_, order("again"));
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(restored->files, 4U - 1U);
    EXPECT_EQ(tree_in(in("again")), tree_in(in("main")));
    EXPECT_EQ(inode_of(in("again", "z")), inode_of(in("again", "a/one"))) << "hard links stay";
    EXPECT_EQ(fs::status(in("again", "a/two")).permissions(), fs::perms::owner_read);
    EXPECT_EQ(fs::last_write_time(in("again", "a")), fs::last_write_time(in("main", "a")));
    EXPECT_EQ(head("again"), first_.snapshot_id);
    expect_clean();
}

TEST_F(Restoring, ANameThatIsTakenIsRefused) {
    fs::create_directory(in("there"));
    for (const char* name : {"main", "there"})
        EXPECT_EQ(restore_to_new(repository_, order(name)).error().code, Errc::usage) << name;
    EXPECT_TRUE(fs::is_empty(in("there")));
}

TEST_F(Restoring, AnAlteredFileIsRefusedAndNothingIsLeft) {
    const fs::path stored = control() / "snapshots" / first_.snapshot_id / payload_folder / "b/three";
    write(stored, "x");
    for (const bool is_in_place : {false, true}) {
        const auto before = tree_in(in("main"));
        const Errc code =
            is_in_place ? in_place().error().code : restore_to_new(repository_, order("again")).error().code;
        EXPECT_EQ(code, Errc::payload_hash_mismatch);
        EXPECT_EQ(tree_in(in("main")), before);
        EXPECT_FALSE(fs::exists(in("again")));
        EXPECT_TRUE(fs::is_empty(control() / stages_folder));
    }
    const auto found = examined().findings;
    EXPECT_TRUE(std::ranges::any_of(found, [](const auto& each) { return each.code == Errc::payload_hash_mismatch; }));
}

TEST_F(Restoring, OfOnePathGivesThatAndTheFoldersOnTheWay) {
    ASSERT_TRUE(restore_to_new(repository_, order("part", "z")));
    EXPECT_EQ(tree_in(in("part")), (std::map<std::string, std::string>{{"z", "1"}}))
        << "its first name is not selected, and its content is there all the same";
    ASSERT_TRUE(restore_to_new(repository_, order("other", "a/two")));
    EXPECT_EQ(tree_in(in("other")), (std::map<std::string, std::string>{{"a", "/"}, {"a/two", "2"}}));
    EXPECT_EQ(restore_to_new(repository_, order("none", "nowhere")).error().code, Errc::lock_not_held);
    EXPECT_FALSE(fs::exists(in("none")));
}

TEST_F(Restoring, InPlaceGivesTheTreeBackAndUndoIsOneMore) {
    const auto before = tree_in(in("main"));
    fs::remove_all(in("main", "b"));
    write(in("main", "new/file"), "n");
    write(in("main", "b"), "a file now");
    const auto changed = tree_in(in("main"));
    InPlaceTerms how = terms();
    const auto restored = restore_in_place(repository_, order(), how);
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(tree_in(in("main")), before);
    EXPECT_EQ(head("main"), first_.snapshot_id);
    EXPECT_THAT(restored->kept, IsEmpty());
    expect_clean();
    RestoreOrder back = order();
    back.snapshot = *repository_.descriptor(how.undo_id);
    how = terms();
    ASSERT_TRUE(restore_in_place(repository_, back, how));
    EXPECT_EQ(tree_in(in("main")), changed);
}

TEST_F(Restoring, WhatIsExcludedStaysAsItIs) {
    write(in("main", ignore_file), "*.log\n/build/\n");
    first_ = take();
    write(in("main", "run.log"), "log");
    write(in("main", "build/deep/object"), "o");
    write(in("main", "a/cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n");
    write(in("main", "a/cache/thing"), "c");
    write(in("main", "only/here/x.log"), "x");
    write(in("main", "gone"), "g");
    fs::permissions(in("main", "build/deep"), fs::perms::owner_read | fs::perms::owner_exec);
    std::map<std::string, std::uint64_t> inodes;
    for (const char* path : {"run.log", "build", "build/deep/object", "a/cache", "a/cache/thing", "only/here/x.log"})
        inodes[path] = inode_of(in("main", path));
    const auto folder_time = fs::last_write_time(in("main", "a"));
    const auto restored = in_place();
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(restored->carried_over, 4U);
    for (const auto& [path, inode] : inodes) EXPECT_EQ(inode_of(in("main", path)), inode) << path;
    EXPECT_EQ(read(in("main", "build/deep/object")), "o");
    EXPECT_FALSE(fs::exists(in("main", "gone")));
    EXPECT_NE(fs::last_write_time(in("main", "a")), folder_time) << "that of the snapshot, and not of the move";
    expect_clean();
    fs::permissions(in("main", "build/deep"), fs::perms::owner_all);
}

TEST_F(Restoring, WhatIsExcludedAndInTheSnapshotIsLeftAlone) {
    write(in("main", "x.log"), "old");
    first_ = take();
    write(in("main", ignore_file), "*.log\n");
    write(in("main", "x.log"), "new");
    ASSERT_TRUE(in_place());
    EXPECT_EQ(read(in("main", "x.log")), "new");
}

TEST_F(Restoring, AFileWhereAnExcludedThingNeedsAFolderIsRefused) {
    write(in("main", "place"), "a file");
    first_ = take();
    fs::remove(in("main", "place"));
    write(in("main", ignore_file), "*.log\n");
    write(in("main", "place/x.log"), "x");
    const auto before = tree_in(in("main"));
    EXPECT_EQ(in_place().error().code, Errc::usage);
    EXPECT_EQ(tree_in(in("main")), before);
    expect_clean();
}

TEST_F(Restoring, InPlaceOfOnePathChangesNothingElse) {
    write(in("main", "a/one"), "changed");
    write(in("main", "b/three"), "changed, too");
    fs::remove_all(in("main", "a/two"));
    const auto restored = in_place("a");
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(read(in("main", "a/one")), "1");
    EXPECT_EQ(read(in("main", "a/two")), "2");
    EXPECT_EQ(read(in("main", "b/three")), "changed, too");
    EXPECT_THAT(restored->kept, IsEmpty());
    expect_clean();
}

TEST_F(Restoring, AMissingPathComesBackWithItsFolders) {
    fs::remove_all(in("main", "a"));
    ASSERT_TRUE(in_place("a/one"));
    EXPECT_EQ(read(in("main", "a/one")), "1");
    EXPECT_FALSE(fs::exists(in("main", "a/two")));
    expect_clean();
}

TEST_F(Restoring, AHolderThatWasOvertakenChangesNothing) {
    write(in("main", "a/one"), "changed");
    const auto how = terms();
    clock_.advance(std::chrono::minutes{5});
    const Claim next = take_over("somebody else");
    EXPECT_GT(next.token.value, mine_.token.value);
    const auto before = tree_in(in("main"));
    const auto refused = restore_in_place(repository_, order(), how);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::fencing_mismatch);
    EXPECT_EQ(tree_in(in("main")), before);
    EXPECT_TRUE(fs::is_empty(control() / stages_folder));
}

TEST_F(Restoring, ATreeThatIsWrittenIntoMeanwhileIsKept) {
    InPlaceTerms how = terms();
    const auto check = how.check;
    how.check = [&](const Guard& guard) {
        write(in("main", "a/late"), "nowhere else");
        return check(guard);
    };
    const auto restored = restore_in_place(repository_, order(), how);
    ASSERT_TRUE(restored) << restored.error().message;
    ASSERT_THAT(restored->kept, HasSubstr("kept-"));
    EXPECT_EQ(read(fs::path(restored->kept) / "tree/a/late"), "nowhere else");
    EXPECT_TRUE(examined(true).is_healthy());
    EXPECT_TRUE(fs::exists(restored->kept)) << "doctor removes nothing that is nowhere else";
}

TEST_F(Restoring, APreviewIsWhatHappens) {
    write(in("main", ignore_file), "*.log\n");
    write(in("main", "x.log"), "x");
    write(in("main", "a/one"), "9");
    fs::remove(in("main", "b/three"));
    write(in("main", "more"), "m");
    std::vector<std::string> changes;
    const auto told = preview_in_place(repository_, order(), [&](const Difference& each) -> Result<void> {
        changes.push_back(std::string(name_of(each.change)) + " " + each.entry.path);
        return {};
    });
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_THAT(changes,
                ElementsAre(fmt::format("deleted {}", ignore_file), "content a/one", "added b/three", "deleted more"));
}

TEST_F(Restoring, AFolderThatBecameALinkLeadsNowhere) {
    const tests::TempFolder outside;
    write(outside.path() / "one", "outside");
    fs::remove_all(in("main", "a"));
    fs::create_directory_symlink(outside.path(), in("main", "a"));
    EXPECT_FALSE(in_place("a/one"));
    EXPECT_EQ(tree_in(outside.path()), (std::map<std::string, std::string>{{"one", "outside"}}));
    ASSERT_TRUE(in_place()) << "as a whole, the link itself is replaced";
    EXPECT_EQ(tree_in(outside.path()), (std::map<std::string, std::string>{{"one", "outside"}}));
    EXPECT_EQ(read(in("main", "a/one")), "1");
}

TEST_F(Restoring, AFolderOfThePayloadThatBecameALinkIsNotRead) {
    const tests::TempFolder outside;
    write(outside.path() / "three", "3");
    const fs::path stored = control() / "snapshots" / first_.snapshot_id / payload_folder / "b";
    fs::remove_all(stored);
    fs::create_directory_symlink(outside.path(), stored);
    EXPECT_FALSE(restore_to_new(repository_, order("again")));
    EXPECT_FALSE(fs::exists(in("again")));
}

TEST_F(Restoring, APruneNamesExactlyWhatGoesAndKeepsTheHead) {
    std::vector<std::string> all{first_.snapshot_id};
    for (int i = 0; i < 3; ++i) {
        write(in("main", "a/one"), std::to_string(i));
        all.push_back(take().snapshot_id);
    }
    const auto told = prune_snapshots(repository_, "main", {.keep_last = 1}, PruneHow::only_tell, "me");
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(visible(), all);
    const auto reader = SnapshotReader::open(repository_, first_);
    ASSERT_TRUE(reader);
    const auto pruned = prune_snapshots(repository_, "main", {.keep_last = 0}, PruneHow::remove, "me");
    ASSERT_TRUE(pruned) << pruned.error().message;
    EXPECT_THAT(visible(), ElementsAre(all[0], all[3])) << "what is being read, and the head";
    ASSERT_EQ(told->removed.size(), 3U);
    EXPECT_EQ(told->removed[1].snapshot_id, pruned->removed[0].snapshot_id);
    EXPECT_EQ(pruned->kept.size(), 2U);
    EXPECT_EQ(prune_snapshots(repository_, "main", {}, PruneHow::remove, "me").error().code, Errc::usage);
    EXPECT_TRUE(examined().is_healthy());
}

TEST_F(Restoring, APruneKeepsWhatIsYoungEnough) {
    clock_.advance(std::chrono::hours{2});
    mine_ = take_over("me");
    const std::string young = take().snapshot_id;
    ASSERT_TRUE(take().snapshot_id > young);
    const auto pruned = prune_snapshots(repository_, "main", {.keep_last = {}, .keep_within = std::chrono::hours{1}},
                                        PruneHow::remove, "me");
    ASSERT_TRUE(pruned);
    ASSERT_EQ(pruned->removed.size(), 1U);
    EXPECT_EQ(pruned->removed.front().snapshot_id, first_.snapshot_id);
}

TEST_F(Restoring, DoctorPutsRightWhatADeadProcessLeftAndNotWhatIsDamaged) {
    const std::string id = new_snapshot_id(clock_.wall());
    write(control() / "snapshots" / (".tmp-" + id) / "payload/x", "x");
    write(control() / "descriptors" / (id + ".json"), "{}");
    write(control() / "intents" / (id + ".json"), "{}");
    write(control() / stages_folder / id / "tree/x", "x");
    EXPECT_FALSE(examined().is_healthy());
    EXPECT_TRUE(examined(true).is_healthy());
    EXPECT_THAT(left_over(), IsEmpty());
    EXPECT_TRUE(examined().findings.empty());
    fs::remove(control() / "snapshots" / first_.snapshot_id / ready_file);
    EXPECT_FALSE(examined(true).is_healthy());
    EXPECT_TRUE(fs::exists(control() / "snapshots" / first_.snapshot_id / payload_folder / "a/one"));
}

TEST_F(Restoring, DoctorIsNotContentWithNothing) {
    const tests::TempFolder empty;
    const auto repository = Repository::create(empty.path().string(), clock_);
    DoctorOptions strict;
    strict.is_strict = true;
    EXPECT_TRUE(examine(*repository, {})->is_healthy());
    EXPECT_FALSE(examine(*repository, strict)->is_healthy());
}

TEST_F(Restoring, DoctorFindsABrokenAuditLog) {
    std::string log = read(control() / audit_file);
    log.replace(log.find("\"me\""), 4, "\"it\"");
    write(control() / audit_file, log);
    const auto found = examined(true).findings;
    EXPECT_TRUE(std::ranges::any_of(found, [](const auto& each) { return each.code == Errc::audit_chain_broken; }));
}

}  // namespace
}  // namespace holdfast::guards::worktree
