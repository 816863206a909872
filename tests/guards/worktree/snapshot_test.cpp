// Goal: a snapshot is the tree, of one moment, and published by the current holder or not at all.
// Method: the guard itself, on real files; its progress is where a test changes the tree or takes the lock away.
#include "client/faulty_store.hpp"
#include "guards/worktree/exclusions.hpp"
#include "guards/worktree/proof.hpp"
#include "guards/worktree/snapshot_fixture.hpp"
#include "support/run_settings.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <thread>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
namespace fs = std::filesystem;

class SnapshotTest : public SnapshotFixture {
protected:
    /// Whether somebody who wants the guard of the repository now would have to wait.
    [[nodiscard]] bool guard_is_taken() const {
        const base::Fd file(open((control() / "guard").c_str(), O_RDWR | O_CLOEXEC));
        struct flock lock{};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        return fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    }
};

TEST_F(SnapshotTest, HasEverythingThatIsInTheTree) {
    write(in("free", "a/b/c.txt"), "deep");
    write(in("free", "empty"), "");
    fs::create_directories(in("free", "a/nothing"));
    fs::create_symlink("../outside", in("free", "link"));
    fs::create_hard_link(in("free", "a/b/c.txt"), in("free", "z-second-name"));
    mkfifo(in("free", "pipe").c_str(), 0620);
    chmod(in("free", "a/b/c.txt").c_str(), 0640);
    chmod(in("free", "a/nothing").c_str(), 0500);
    const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 7}};
    utimensat(AT_FDCWD, in("free", "a").c_str(), times, 0);
    const auto taken = snapshot("free");
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(read(payload(*taken, "a/b/c.txt")), "deep");
    EXPECT_EQ(fs::read_symlink(payload(*taken, "link")), "../outside");
    struct stat facts{};
    ASSERT_EQ(lstat(payload(*taken, "a/b/c.txt").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0640U);
    EXPECT_EQ(facts.st_nlink, 2U);
    ASSERT_EQ(lstat(payload(*taken, "a/nothing").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0500U);
    ASSERT_EQ(lstat(payload(*taken, "a").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mtim.tv_sec, 1'000'000'000);
    ASSERT_EQ(lstat(payload(*taken, "pipe").c_str(), &facts), 0);
    EXPECT_TRUE(S_ISFIFO(facts.st_mode));
    EXPECT_EQ(taken->descriptor.files, 2U);
    EXPECT_THAT(left_over(), IsEmpty());
    chmod(payload(*taken, "a/nothing").c_str(), 0700);
}

TEST_F(SnapshotTest, LinksWhatDidNotChangeAndDoesNotReadIt) {
    fill("free", 40);
    const auto first = snapshot("free");
    ASSERT_TRUE(first) << first.error().message;
    write(in("free", "d1/f1"), "changed");
    chmod(in("free", "d2/f2").c_str(), 0600);
    const auto second = snapshot("free");
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->descriptor.parent_id, first->descriptor.snapshot_id);
    const auto inode = [&](const Snapshot& taken, const char* path) {
        struct stat facts{};
        EXPECT_EQ(stat(payload(taken, path).c_str(), &facts), 0) << path;
        return facts.st_ino;
    };
    EXPECT_EQ(inode(*first, "d3/f3"), inode(*second, "d3/f3"));
    EXPECT_NE(inode(*first, "d1/f1"), inode(*second, "d1/f1"));
    EXPECT_NE(inode(*first, "d2/f2"), inode(*second, "d2/f2")) << "its mode is another one";
    EXPECT_EQ(read(payload(*first, "d1/f1")), "file 1");
    EXPECT_EQ(read(payload(*second, "d1/f1")), "changed");
    struct stat facts{};
    ASSERT_EQ(stat(payload(*first, "d2/f2").c_str(), &facts), 0);
    EXPECT_NE(facts.st_mode & 07777, 0600U);
    const auto third = snapshot("free");
    ASSERT_TRUE(third);
    EXPECT_EQ(third->descriptor.payload_root_hash, second->descriptor.payload_root_hash);
    // A file system whose ctime is not to be trusted has everything read.
    const auto since = settle(repository_.open_worktree("free")->get());
    ASSERT_TRUE(since);
    EXPECT_EQ(third->unread, since->ctime_is_trusted ? 40U : 0U);
}

TEST_F(SnapshotTest, AFileThatWasTouchedBackIsReadAgain) {
    fill("free", 3);
    const auto path = in("free", "d1/f1");
    const auto before = fs::last_write_time(path);
    const auto first = snapshot("free");
    ASSERT_TRUE(first) << first.error().message;
    write(path, "FILE 1");  // As long as before.
    fs::last_write_time(path, before);
    const auto second = snapshot("free");
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(read(payload(*second, "d1/f1")), "FILE 1");
    EXPECT_EQ(read(payload(*first, "d1/f1")), "file 1");
}

TEST_F(SnapshotTest, LeavesOutWhatTheExclusionListSays) {
    fill("free", 5);
    write(in("free", ignore_file), "*.tmp\n!keep.tmp\n");
    write(in("free", "x.tmp"), "");
    write(in("free", "keep.tmp"), "");
    const auto taken = snapshot("free");
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_FALSE(fs::exists(payload(*taken, "x.tmp")));
    EXPECT_TRUE(fs::exists(payload(*taken, "keep.tmp")));
    EXPECT_TRUE(fs::exists(payload(*taken, ignore_file)));
    EXPECT_EQ(taken->descriptor.excluded, 1U);
}

TEST_F(SnapshotTest, WhatIsLeftOutMayChangeMeanwhile) {
    fill("free", 200);
    write(in("free", ignore_file), "*.tmp\n");
    write(in("free", "d1/a.tmp"), "");
    SnapshotOptions options;
    options.progress = [&](const Progress&) { write(in("free", "d1/a.tmp"), "more"); };
    EXPECT_TRUE(snapshot("free", options));
}

TEST_F(SnapshotTest, AFileCalledReadyIsPayload) {
    write(in("free", ".READY"), "mine");
    const auto taken = snapshot("free");
    ASSERT_TRUE(taken);
    EXPECT_EQ(read(payload(*taken, ".READY")), "mine");
}

TEST_F(SnapshotTest, BestEffortIsTakenWhileFilesChange) {
    fill("free", 200);
    SnapshotOptions options;
    options.consistency = json::Consistency::best_effort;
    options.progress = [&](const Progress& now) { write(in("free", "d1/f1"), fmt::format("{}", now.entries)); };
    const auto taken = snapshot("free", options);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(taken->descriptor.consistency, json::Consistency::best_effort);
    const auto again = repository_.descriptor(taken->descriptor.snapshot_id);
    EXPECT_EQ(again->consistency, json::Consistency::best_effort);
}

TEST_F(SnapshotTest, WithoutAWriterIsQuiescedAndSaysSo) {
    fill("free", 5);
    const auto taken = snapshot("free");
    ASSERT_TRUE(taken);
    EXPECT_EQ(repository_.descriptor(taken->descriptor.snapshot_id)->consistency, json::Consistency::quiesced);
}

// The head.

TEST_F(SnapshotTest, OfTwoAtOnceOneIsRefusedAndNoneIsLost) {
    fill("free", 5);
    std::string inner_id;
    SnapshotOptions options;
    options.progress = [&](const Progress& now) {
        if (now.step != "publish" || !inner_id.empty()) return;
        inner_id = "taken";
        inner_id = snapshot("free")->descriptor.snapshot_id;
    };
    const auto outer = snapshot("free", options);
    ASSERT_FALSE(outer);
    EXPECT_EQ(outer.error().code, Errc::fencing_mismatch);
    EXPECT_EQ(head("free"), inner_id);
    EXPECT_THAT(visible(), ElementsAre(inner_id));
    EXPECT_THAT(left_over(), IsEmpty());
}

// The token.

TEST_F(SnapshotTest, OfAHolderThatWasOvertakenPublishesNothing) {
    fill("main", 20);
    std::vector<std::string> published;
    for (int round = 0; round < tests::scaled(4); ++round) {
        auto options = under(take_over("alice", 10s));
        bool was_overtaken = false;
        options.progress = [&](const Progress& now) {
            if (now.step != "publish" || std::exchange(was_overtaken, true)) return;
            clock_.advance(11s);
            published.push_back(snapshot("main", under(take_over("bob")))->descriptor.snapshot_id);
        };
        const auto late = snapshot("main", options);
        ASSERT_FALSE(late);
        EXPECT_EQ(late.error().code, Errc::fencing_mismatch);
        EXPECT_EQ(visible(), published);
        EXPECT_EQ(head("main"), published.back());
        EXPECT_THAT(left_over(), IsEmpty());
        clock_.advance(31s);
    }
}

TEST_F(SnapshotTest, ATokenThatIsStaleFromTheBeginningPublishesNothing) {
    fill("main", 3);
    const Claim first = take_over("alice", 10s);
    clock_.advance(11s);
    take_over("bob");
    const auto late = snapshot("main", under(first));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Errc::fencing_mismatch);
    EXPECT_THAT(visible(), IsEmpty());
    // The lock's own audit log knows of it.
    const auto events = store_->history({.name = lock_of("main")}, soon());
    ASSERT_TRUE(events) << events.error().message;
    EXPECT_TRUE(std::ranges::any_of(*events, [](const AuditEvent& event) { return name_of(event.kind) == "fenced"; }));
}

TEST_F(SnapshotTest, ALeaseThatRanOutAndThatNobodyTookPublishesNothing) {
    fill("main", 3);
    const Claim first = take_over("alice", 10s);
    clock_.advance(11s);
    const auto late = snapshot("main", under(first));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Errc::lock_expired);
    EXPECT_THAT(visible(), IsEmpty());
}

TEST_F(SnapshotTest, AnotherLeaseWithTheSameTokenPublishesNothing) {
    fill("main", 3);
    Claim forged = take_over("alice");
    forged.lock_id = LockId::random();
    const auto refused = snapshot("main", under(forged));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::fencing_mismatch);
    EXPECT_THAT(visible(), IsEmpty());
}

TEST_F(SnapshotTest, NobodySealsBetweenTheCheckOfTheTokenAndThePublication) {
    fill("main", 3);
    const Claim first = take_over("alice", 10s);
    tests::FaultyStore line(*store_);
    bool was_sealed = false;
    int checks = 0;
    line.before_answers([&] {
        // The answer says that the token is current; before it arrives, the lock changes hands.
        if (++checks > 1) return;
        clock_.advance(11s);
        const Acquire acquire = tests::by("bob", lock_of("main"), 30s);
        const auto granted = store_->apply_one(acquire, soon());
        ASSERT_TRUE(granted);
        const Claim second{granted->lock.token, acquire.as.lock_id, "bob"};
        if (guard_is_taken()) return;
        was_sealed = seal(repository_, "main", second, *store_, soon()).has_value();
    });
    auto options = under(first);
    options.store = &line;
    const auto taken = snapshot("main", options);
    EXPECT_EQ(checks, 1);
    EXPECT_NE(taken.has_value(), was_sealed) << "either it was published before bob began, or not at all";
}

TEST_F(SnapshotTest, ALockThatGaveOutASmallerTokenThanTheWorktreeHasSeenIsFound) {
    fill("main", 3);
    take_over("alice");
    {
        const auto guard = repository_.guard(soon());
        auto registry = *repository_.registry();
        find_row(registry, "main")->seal->token += 1'000'000;
        ASSERT_TRUE(repository_.write_registry(*guard, registry));
    }
    clock_.advance(31s);
    const Acquire acquire = tests::by("bob", lock_of("main"), 30s);
    const auto granted = store_->apply_one(acquire, soon());
    ASSERT_TRUE(granted);
    const auto sealed = seal(repository_, "main", {granted->lock.token, acquire.as.lock_id, "bob"}, *store_, soon());
    ASSERT_FALSE(sealed);
    EXPECT_EQ(sealed.error().code, Errc::token_regressed);
}

TEST_F(SnapshotTest, StopsWhenItsLeaseIsLost) {
    fill("main", 200);
    std::stop_source lost;
    auto options = under(take_over("alice"));
    options.stop = lost.get_token();
    options.progress = [&](const Progress& now) {
        if (now.entries > 0) lost.request_stop();
    };
    EXPECT_FALSE(snapshot("main", options));
    EXPECT_THAT(visible(), IsEmpty());
    EXPECT_THAT(left_over(), IsEmpty());
}

// After a crash.

TEST_F(SnapshotTest, WhatWasPublishedWithoutItsHeadIsFinishedByTheNext) {
    fill("free", 3);
    const auto first = snapshot("free");
    ASSERT_TRUE(first);
    // As after a crash behind the rename: the intent is there, the head is not.
    const auto& descriptor = first->descriptor;
    write(control() / "intents" / (descriptor.snapshot_id + ".json"),
          json::snapshot_intent({.snapshot_id = descriptor.snapshot_id, .worktree_id = "free"}).done().written());
    {
        const auto guard = repository_.guard(soon());
        auto registry = *repository_.registry();
        find_row(registry, "free")->head.clear();
        ASSERT_TRUE(repository_.write_registry(*guard, registry));
    }
    const auto second = snapshot("free");
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->descriptor.parent_id, descriptor.snapshot_id);
    EXPECT_THAT(left_over(), IsEmpty());
}

TEST_F(SnapshotTest, AnAlteredAuditLogIsFoundBeforeAnythingIsPublished) {
    fill("free", 3);
    std::string log = read(control() / audit_file);
    log.replace(log.find("shared"), 6, "SHARED");
    write(control() / audit_file, log);
    const auto refused = snapshot("free");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::audit_chain_broken);
    EXPECT_THAT(visible(), IsEmpty());
}

TEST_F(SnapshotTest, ADamagedManifestBeforeItCostsACopyAndNothingElse) {
    fill("free", 3);
    const auto first = snapshot("free");
    ASSERT_TRUE(first);
    const auto manifest = control() / "snapshots" / first->descriptor.snapshot_id / manifest_file;
    std::string bytes = read(manifest);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write(manifest, bytes);
    const auto second = snapshot("free");
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->unread, 0U);
    EXPECT_EQ(read(payload(*second, "d1/f1")), "file 1");
}

}  // namespace
}  // namespace holdfast::guards::worktree
