// Goal: a repository is what its files say, wherever one stands in it, and shows finished snapshots only.
#include "guards/worktree/repository.hpp"

#include "guards/worktree/files.hpp"
#include "support/temp_folder.hpp"
#include "values/sha256.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace holdfast::guards::worktree {
namespace {

namespace fs = std::filesystem;

class RepositoryFiles : public testing::Test {
protected:
    RepositoryFiles() : repository_(*Repository::create(folder_.path().string(), clock_)) {}

    Guard guard() { return *repository_.guard(Deadline::never()); }
    WorktreeRow add(const std::string& id, bool is_shared = false) {
        return *repository_.add_worktree(guard(), id, is_shared, "me");
    }
    /// As a snapshot without a tree would be.
    void make_snapshot(const std::string& id) {
        json::SnapshotDescriptor descriptor;
        descriptor.snapshot_id = id;
        descriptor.worktree_id = "main";
        descriptor.engine = "copy";
        put("descriptors/" + id + ".json", json::snapshot_descriptor(descriptor).done().written());
        put("snapshots/" + id + "/" + ready_file, json::snapshot_ready({.snapshot_id = id}).done().written());
    }
    void put(const std::string& path, const std::string& text) {
        const fs::path whole = folder_.path() / control_folder / path;
        fs::create_directories(whole.parent_path());
        std::ofstream(whole) << text;
    }

    tests::TempFolder folder_;
    ManualClock clock_;
    Repository repository_;
};

TEST_F(RepositoryFiles, AreFoundFromEverywhereInside) {
    add("main");
    add("second");
    fs::create_directories(folder_.path() / "second/deep/er");
    const auto again = Repository::find((folder_.path() / "second/deep").string(), clock_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->worktree("", (folder_.path() / "second/deep").string())->worktree_id, "second");
    EXPECT_EQ(again->worktree("", folder_.path().string())->worktree_id, "main");
    EXPECT_EQ(again->worktree("second", folder_.path().string())->worktree_id, "second");
    const auto unknown = again->worktree("third", folder_.path().string());
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Errc::usage);
}

TEST_F(RepositoryFiles, AWorktreeKeepsItsMode) {
    EXPECT_FALSE(add("main").is_shared);
    EXPECT_FALSE(add("main").is_shared);
    EXPECT_FALSE(repository_.add_worktree(guard(), "main", true, "me"));
    EXPECT_TRUE(add("free", true).is_shared);
    EXPECT_EQ(repository_.registry()->worktrees.size(), 2U);
}

TEST_F(RepositoryFiles, ALinkIsNoWorktree) {
    const tests::TempFolder outside;
    fs::create_directory_symlink(outside.path(), folder_.path() / "main");
    EXPECT_FALSE(repository_.add_worktree(guard(), "main", false, "me"));
}

TEST(WorktreeIds, AreNamesOfFoldersBesideTheControlFolder) {
    for (const char* name : {"main", "a b", "x.y", "main/", "./main"}) EXPECT_TRUE(worktree_id_of(name)) << name;
    for (const char* name : {"", ".", "..", ".holdfast", "a/b", "/a", "../a", "a\nb"})
        EXPECT_FALSE(worktree_id_of(name)) << name;
}

TEST_F(RepositoryFiles, OfANewerFormatAreRefused) {
    put(registry_file, R"({"format":2,"something":"else"})");
    const auto refused = Repository::find(folder_.path().string(), clock_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::format_unsupported);
}

TEST_F(RepositoryFiles, ThatOthersCanChangeAreRefused) {
    fs::permissions(folder_.path() / control_folder, fs::perms::all);
    const auto refused = Repository::find(folder_.path().string(), clock_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::store_unsafe);
}

TEST_F(RepositoryFiles, ASnapshotWithoutReadyIsInvisibleAndSaidToBePartial) {
    const std::string finished = new_snapshot_id(clock_.wall());
    clock_.advance(std::chrono::milliseconds{1});
    const std::string partial = new_snapshot_id(clock_.wall());
    make_snapshot(finished);
    make_snapshot(partial);
    fs::remove(folder_.path() / control_folder / "snapshots" / partial / ready_file);
    const auto all = repository_.snapshots();
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 1U);
    EXPECT_EQ(all->front().snapshot_id, finished);
    EXPECT_EQ(repository_.descriptor(partial).error().code, Errc::partial_snapshot);
    EXPECT_EQ(repository_.descriptor(new_snapshot_id(clock_.wall())).error().code, Errc::lock_not_held);
    EXPECT_EQ(repository_.descriptor("../../etc").error().code, Errc::lock_not_held);
}

TEST_F(RepositoryFiles, AnUnfinishedSnapshotIsPartialByName) {
    const std::string id = new_snapshot_id(clock_.wall());
    put("snapshots/.tmp-" + id + "/payload/x", "x");
    EXPECT_EQ(repository_.descriptor(id).error().code, Errc::partial_snapshot);
    EXPECT_TRUE(repository_.snapshots()->empty());
}

TEST_F(RepositoryFiles, AnAlteredDescriptorIsFound) {
    const std::string id = new_snapshot_id(clock_.wall());
    make_snapshot(id);
    const fs::path path = folder_.path() / control_folder / "descriptors" / (id + ".json");
    std::ifstream in(path);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    text.replace(text.find("quiesced"), 8, "best_effort");
    std::ofstream(path) << text;
    EXPECT_EQ(repository_.descriptor(id).error().code, Errc::payload_hash_mismatch);
}

TEST_F(RepositoryFiles, ASnapshotIsNamedByAsMuchAsTellsItFromOthers) {
    const std::string id = new_snapshot_id(clock_.wall());
    make_snapshot(id);
    EXPECT_EQ(repository_.snapshot_named(id.substr(0, 13))->snapshot_id, id);
    EXPECT_EQ(repository_.snapshot_named(id.substr(14))->snapshot_id, id);
    EXPECT_EQ(repository_.snapshot_named("").error().code, Errc::lock_not_held);
    make_snapshot(id.substr(0, 13) + "-00000000");
    EXPECT_EQ(repository_.snapshot_named(id.substr(0, 13)).error().code, Errc::usage);
}

TEST_F(RepositoryFiles, EveryChangeOfTheWorktreesIsInTheAuditLog) {
    add("main");
    add("main");
    const auto last = read_text(repository_.control_fd(), audit_file);
    ASSERT_TRUE(last && *last);
    EXPECT_EQ(std::count((*last)->begin(), (*last)->end(), '\n'), 1);
    EXPECT_NE((*last)->find("worktree_added"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::guards::worktree
