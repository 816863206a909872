// Goal: what other users put into a worktree gives them no rights, and keeps nobody out; and a clock that goes back
// changes no order. Method: a plain user works on a tree in which files of another one are, which needs root to set up.
#include "guards/worktree/prune.hpp"
#include "guards/worktree/restore_fixture.hpp"
#include "support/isolation.hpp"

#include <functional>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t somebody = 12345;

class OtherUsers : public Restoring {
protected:
    void SetUp() override {
        if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "no file can be given to another user";
        user_.emplace(folder_.path());
        if (!*user_) GTEST_SKIP() << tests::not_here << "root cannot become another user";
    }
    /// What another user does to `path`.
    void give_away(const fs::path& path, mode_t mode) const {
        const uid_t me = geteuid();
        ASSERT_EQ(seteuid(0), 0);
        EXPECT_EQ(lchown(path.c_str(), somebody, somebody), 0);
        EXPECT_EQ(chmod(path.c_str(), mode), 0);
        ASSERT_EQ(seteuid(me), 0);
    }
    static mode_t mode_of(const fs::path& path) {
        struct stat facts{};
        return lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
    }

    std::optional<tests::AsPlainUser> user_{};
};

TEST_F(OtherUsers, ASetuidFileOfAnotherUserDoesNotBecomeOneOfOurs) {
    write(in("main", "theirs"), "#!/bin/sh\n");
    write(in("main", "mine"), "#!/bin/sh\n");
    give_away(in("main", "theirs"), 06755);
    ASSERT_EQ(chmod(in("main", "mine").c_str(), 04755), 0);
    first_ = take();
    const auto restored = restore_to_new(repository_, order("again"));
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(mode_of(in("again", "theirs")), 0755U);
    EXPECT_EQ(mode_of(in("again", "mine")), 04755U);
    EXPECT_EQ(mode_of(control() / "snapshots" / first_.snapshot_id / payload_folder / "theirs"), 0755U);
}

TEST_F(OtherUsers, AnOldTreeThatCannotBeRemovedIsKeptAndKeepsNobodyOut) {
    write(in("main", "theirs/file"), "cannot be removed");
    give_away(in("main", "theirs"), 0755);
    write(in("main", "a/one"), "changed");
    const auto restored = in_place();
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(read(in("main", "a/one")), "1");
    ASSERT_THAT(restored->kept, HasSubstr("kept-"));
    EXPECT_THAT(restored->kept_why, HasSubstr("file"));
    EXPECT_EQ(read(fs::path(restored->kept) / "tree/theirs/file"), "cannot be removed");
    EXPECT_THAT(*restore_intents(repository_), IsEmpty());
    const auto again = in_place();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_THAT(again->kept, IsEmpty());
}

TEST_F(Restoring, SnapshotsKeepTheirOrderWhenTheClockGoesBack) {
    write(in("main", "a/one"), "2");
    const std::string second = take().snapshot_id;
    clock_.step_wall(-std::chrono::hours{24});
    write(in("main", "a/one"), "3");
    const std::string third = take().snapshot_id;
    write(in("main", "a/one"), "4");
    const std::string fourth = take().snapshot_id;
    EXPECT_THAT(visible(), ElementsAre(first_.snapshot_id, second, third, fourth));
    ASSERT_TRUE(prune_snapshots(repository_, "main", {.keep_last = 2}, PruneHow::remove, "me"));
    EXPECT_THAT(visible(), ElementsAre(third, fourth));
}

}  // namespace
}  // namespace holdfast::guards::worktree
