// Goal: nobody but the owner of a SQLite store can change what it says, and a store has one name only. Method: a real
// folder, in which files are given away, opened to others, linked, mounted, moved and deleted between the calls.

#include "holdfast/open.hpp"
#include "sqlite_by_hand.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t stranger = 12345;

class SqliteOwnership : public testing::Test {
protected:
    [[nodiscard]] fs::path folder() const { return folder_.path() / "store"; }
    [[nodiscard]] fs::path file() const { return folder() / "locks.db"; }
    [[nodiscard]] fs::path beside(const std::string& suffix) const { return file().string() + suffix; }
    [[nodiscard]] std::string url() const { return "sqlite:" + file().string(); }
    [[nodiscard]] std::unique_ptr<Store> open() const { return must(open_store(url())); }
    [[nodiscard]] Error refusal() const {
        const auto opened = open_store(url());
        return opened ? Error{Errc::usage, "the store was opened"} : opened.error();
    }
    void SetUp() override { fs::create_directory(folder(), folder_.path()); }
    void create() const { must(open()->apply_one(by_alice(lock("a")), Deadline::never())); }

    const TempFolder folder_;
};

class SqliteSideFile : public SqliteOwnership, public testing::WithParamInterface<const char*> {
protected:
    [[nodiscard]] fs::path side() const { return beside(GetParam()); }
    /// What SQLite, or we, would have made there.
    void make_side() const {
        const bool is_folder = std::string_view(GetParam()) == "-wake";
        if (is_folder)
            fs::create_directory(side(), folder_.path());
        else if (!fs::exists(side()))
            write_bytes(side(), "");
        fs::permissions(side(), is_folder ? fs::perms::owner_all : fs::perms::owner_read | fs::perms::owner_write);
    }
    void expect_refused(const std::string& why) const {
        const auto before = contents_of(folder());
        const Error error = refusal();
        EXPECT_EQ(error.code, Errc::store_unsafe) << error.message;
        EXPECT_THAT(error.message, HasSubstr(side().string()));
        EXPECT_THAT(error.message, HasSubstr(why));
        EXPECT_TRUE(contents_of(folder()) == before) << "something was changed";
    }
};

TEST_P(SqliteSideFile, OfAnotherUserIsRefused) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "nothing can be given to another user";
    create();
    make_side();
    ASSERT_EQ(chown(side().c_str(), stranger, stranger), 0);
    expect_refused("belongs to user 12345");
}

TEST_P(SqliteSideFile, OfAnotherUserIsRefusedBeforeThereIsADatabase) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "nothing can be given to another user";
    make_side();
    ASSERT_EQ(chown(side().c_str(), stranger, stranger), 0);
    expect_refused("belongs to user 12345");
}

TEST_P(SqliteSideFile, ThatOthersCanWriteIsRefused) {
    create();
    make_side();
    ASSERT_EQ(chmod(side().c_str(), 0666), 0);
    expect_refused("chmod go-w");
}

TEST_P(SqliteSideFile, ThatIsALinkIsRefused) {
    create();
    make_side();
    fs::rename(side(), folder_.path() / "elsewhere");
    fs::create_symlink(folder_.path() / "elsewhere", side());
    expect_refused("remove it");
}

TEST_P(SqliteSideFile, ThatIsAPipeIsRefusedAndDoesNotHang) {
    create();
    make_side();
    fs::remove(side());
    ASSERT_EQ(mkfifo(side().c_str(), 0600), 0);
    // An open would wait for a writer that never comes.
    alarm(30);
    expect_refused("remove it");
    alarm(0);
}

TEST_P(SqliteSideFile, OfOursIsAccepted) {
    create();
    make_side();
    EXPECT_THAT(open()->apply_one(by_bob(lock("b")), Deadline::never()), Granted());
}

INSTANTIATE_TEST_SUITE_P(Files, SqliteSideFile, testing::Values("-shm", "-wal", "-journal", "-gate", "-wake"),
                         [](const auto& test) { return std::string(test.param).substr(1); });

TEST_F(SqliteOwnership, AGateOfAnotherUserThatAppearsLaterIsRefusedAndNotWaitedFor) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "nothing can be given to another user";
    const auto store = open();
    must(store->apply_one(by_alice(lock("a")), Deadline::never()));
    fs::remove(beside("-gate"));
    write_bytes(beside("-gate"), "");
    ASSERT_EQ(chown(beside("-gate").c_str(), stranger, stranger), 0);
    EXPECT_THAT(store->apply_one(by_bob(lock("b")), Deadline::never()), RefusedWith(Errc::store_unsafe));
    EXPECT_EQ(must(store->inspect(lock("b"), Deadline::never())).seq, 0U);
}

TEST_F(SqliteOwnership, AFolderOfAnotherUserIsRefused) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "nothing can be given to another user";
    ASSERT_EQ(chown(folder().c_str(), stranger, stranger), 0);
    ASSERT_EQ(chmod(folder().c_str(), 01777), 0);
    EXPECT_EQ(refusal().code, Errc::store_unsafe) << "its owner can swap files in spite of the sticky bit";
    EXPECT_TRUE(fs::is_empty(folder()));
}

TEST_F(SqliteOwnership, AFolderThatAGroupCanWriteIsRefusedUnlessItIsTheOwnersOwnGroup) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "nothing can be given to another user";
    ASSERT_EQ(chown(folder().c_str(), 0, stranger), 0);
    ASSERT_EQ(chmod(folder().c_str(), 0770), 0);
    const Error error = refusal();
    EXPECT_EQ(error.code, Errc::store_unsafe);
    EXPECT_THAT(error.message, HasSubstr("chmod g-w"));
    ASSERT_EQ(chmod(folder().c_str(), 01770), 0);
    EXPECT_THAT(open_store(url()), Granted());
    ASSERT_EQ(chown(folder().c_str(), 0, 0), 0);
    ASSERT_EQ(chmod(folder().c_str(), 0770), 0);
    EXPECT_THAT(open_store(url()), Granted());
}

TEST_F(SqliteOwnership, ADatabaseWithTwoNamesIsRefusedUnderBoth) {
    create();
    fs::create_hard_link(file(), folder_.path() / "other.db");
    for (const std::string& name : {url(), "sqlite:" + (folder_.path() / "other.db").string()}) {
        const auto opened = open_store(name);
        ASSERT_THAT(opened, RefusedWith(Errc::store_unsafe)) << name;
        EXPECT_THAT(opened.error().message, HasSubstr("cp -p"));
    }
    EXPECT_FALSE(fs::exists((folder_.path() / "other.db-gate")));
    // As the message says.
    fs::copy_file(file(), folder() / "locks.db.copy");
    ASSERT_EQ(chmod((folder() / "locks.db.copy").c_str(), 0600), 0);
    fs::rename(folder() / "locks.db.copy", file());
    EXPECT_EQ(must(open()->inspect(lock("a"), Deadline::never())).state, LockState::held);
}

TEST_F(SqliteOwnership, ADatabaseThatIsMountedWithoutItsFolderIsRefused) {
    create();
    const fs::path elsewhere = folder_.path() / "elsewhere";
    fs::create_directory(elsewhere, folder_.path());
    write_bytes(elsewhere / "locks.db", "");
    const int status = in_own_mounts([&] {
        if (mount(file().c_str(), (elsewhere / "locks.db").c_str(), nullptr, MS_BIND, nullptr) != 0) return no_mounts;
        const auto opened = open_store("sqlite:" + (elsewhere / "locks.db").string());
        if (opened || opened.error().code != Errc::store_unsafe) return 1;
        return opened.error().message.find("mount its folder") == std::string::npos ? 2 : 0;
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "nothing can be mounted";
    EXPECT_EQ(status, 0);
}

TEST_F(SqliteOwnership, AFolderThatIsMountedUnderAnotherNameIsTheSameStore) {
    create();
    const fs::path elsewhere = folder_.path() / "elsewhere";
    fs::create_directory(elsewhere, folder_.path());
    const int status = in_own_mounts([&] {
        if (mount(folder().c_str(), elsewhere.c_str(), nullptr, MS_BIND, nullptr) != 0) return no_mounts;
        const auto here = open();
        const auto there = must(open_store("sqlite:" + (elsewhere / "locks.db").string()));
        must(there->apply_one(by_bob(lock("b")), Deadline::never()));
        const Reply second = here->apply_one(by_carol(lock("b")), Deadline::never());
        return !second && second.error().code == Errc::lock_conflict ? 0 : 1;
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "nothing can be mounted";
    EXPECT_EQ(status, 0);
}

TEST_F(SqliteOwnership, AHolderWhoseDatabaseWasDeletedIsToldSoAndNoNewOneIsMade) {
    const auto store = open();
    const Acquire held = by_alice(lock("a"));
    must(store->apply_one(held, Deadline::never()));
    for (const char* suffix : {"", "-wal", "-shm", "-gate"}) fs::remove(beside(suffix));
    EXPECT_THAT(store->apply_one(renewal(held), Deadline::never()), RefusedWith(Errc::store_unavailable));
    EXPECT_FALSE(fs::exists(file()));
}

TEST_F(SqliteOwnership, AHolderWhoseDatabaseWasReplacedDoesNotRenewInTheOldOne) {
    const auto store = open();
    const Acquire held = by_alice(lock("a"));
    must(store->apply_one(held, Deadline::never()));
    for (const char* suffix : {"", "-wal", "-shm", "-gate"}) fs::remove(beside(suffix));
    must(open()->apply_one(by_bob(lock("a")), Deadline::never()));
    EXPECT_THAT(store->apply_one(renewal(held), Deadline::never()), RefusedWith(Errc::lock_not_held));
}

TEST_F(SqliteOwnership, AHolderWhoseDatabaseWasRenamedIsToldSo) {
    const auto store = open();
    const Acquire held = by_alice(lock("a"));
    must(store->apply_one(held, Deadline::never()));
    fs::rename(file(), folder() / "renamed.db");
    EXPECT_THAT(store->apply_one(renewal(held), Deadline::never()), RefusedWith(Errc::store_unavailable));
    EXPECT_FALSE(fs::exists(file()));
}

}  // namespace
}  // namespace holdfast::tests
