// Goal: nobody but the owner of a file store can change what it says, and it is one store under any name. Method: a
// real folder, in which files are given away, opened to others, linked and mounted between the calls.

#include "base/doorbell.hpp"
#include "base/file_lock.hpp"
#include "file_fixture.hpp"
#include "support/isolation.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace holdfast::stores::file {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using tests::not_here;

constexpr uid_t stranger = 12345;

class FileOwnership : public FileStoreTest {
protected:
    /// A store with one file of each kind; where they are, and a request that reads or writes the file.
    void fill() {
        store_ = open();
        holder_ = acquire_of("x", Credentials::random());
        for (int i = 0; i < 20; ++i) static_cast<void>(granted(*store_, holder_));
        Acquire waits = acquire_of("x", Credentials::random());
        waits.ticket = ttl(10s);
        EXPECT_EQ(refused(*store_, waits), Errc::lock_conflict);
        ticket_ = fs::directory_iterator(folder_of("x") / "queue")->path();
        audit_ = folder_of("x") / "audit.1";
    }
    [[nodiscard]] Error failure(const Request& request) {
        const auto reply = store_->apply_one(request, Deadline::never());
        return reply ? Error{Errc::usage, "granted"} : reply.error();
    }
    void expect_refused(const fs::path& file, const Error& error) {
        EXPECT_EQ(error.code, Errc::store_unsafe) << file << ": " << error.message;
        EXPECT_THAT(error.message, HasSubstr(file.string()));
    }
    [[nodiscard]] Result<std::vector<AuditEvent>> history() {
        return store_->history({.name = lock_name("x")}, Deadline::never());
    }
    /// Every file and folder of the store, but for the pipes.
    [[nodiscard]] std::vector<fs::path> everything() const {
        return {dir(),
                dir() / "format",
                dir() / "locks",
                folder_of("x"),
                folder_of("x") / "guard",
                folder_of("x") / "record",
                folder_of("x") / "queue",
                ticket_};
    }

    std::unique_ptr<Store> store_;
    Acquire holder_ = acquire_of("x", Credentials::random());
    fs::path ticket_;
    fs::path audit_;
};

TEST_F(FileOwnership, WhateverBelongsToAnotherUserIsRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "nothing can be given to another user";
    fill();
    for (const fs::path& path : everything()) {
        ASSERT_EQ(chown(path.c_str(), stranger, stranger), 0);
        // Leaving the queue checks the ticket in it, too.
        expect_refused(path, failure(Release{holder_.name, holder_.as}));
        ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
    }
    ASSERT_EQ(chown(audit_.c_str(), stranger, stranger), 0);
    expect_refused(audit_, history().error());
}

TEST_F(FileOwnership, WhateverOthersCanWriteIsRefused) {
    fill();
    for (const fs::path& path : everything()) {
        const fs::perms before = fs::status(path).permissions();
        ASSERT_EQ(chmod(path.c_str(), fs::is_directory(path) ? 0777 : 0666), 0);
        expect_refused(path, failure(Release{holder_.name, holder_.as}));
        fs::permissions(path, before);
    }
    ASSERT_EQ(chmod(audit_.c_str(), 0622), 0);
    expect_refused(audit_, history().error());
}

TEST_F(FileOwnership, AnAuditFileOfAnotherUserIsNotWrittenTo) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "nothing can be given to another user";
    fill();
    ASSERT_EQ(chown(audit_.c_str(), stranger, stranger), 0);
    const std::string before = content_of(audit_);
    Error error;
    for (int i = 0; i < 20 && error.code != Errc::store_unsafe; ++i) error = failure(holder_);
    expect_refused(audit_, error);
    EXPECT_EQ(content_of(audit_), before);
}

TEST_F(FileOwnership, AStoreInAFolderWhereAnybodyCanSwapItIsNeitherMadeNorUsed) {
    const fs::path place = root() / "place";
    fs::create_directory(place);
    ASSERT_EQ(chmod(place.c_str(), 0777), 0);
    const auto open_there = [&] {
        return open_file_store(*base::Url::parse("file:" + (place / "store").string() + "?sync=off"), clock_);
    };
    ASSERT_FALSE(open_there());
    EXPECT_EQ(open_there().error().code, Errc::store_unsafe);
    EXPECT_THAT(open_there().error().message, HasSubstr("chmod o-w"));
    EXPECT_TRUE(fs::is_empty(place));
    ASSERT_EQ(chmod(place.c_str(), 01777), 0);
    const auto store = open_there();
    ASSERT_TRUE(store);
    static_cast<void>(granted(**store, holder_));
    ASSERT_EQ(chmod(place.c_str(), 0777), 0);
    EXPECT_EQ(refused(**store, holder_), Errc::store_unsafe);
}

TEST_F(FileOwnership, AStoreInAFolderOfAnotherUserIsRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "nothing can be given to another user";
    ASSERT_EQ(chown(root().c_str(), stranger, stranger), 0);
    EXPECT_EQ(try_open(clock_).error().code, Errc::store_unsafe);
}

// The sticky bit keeps others from swapping what is in a folder, but not its owner.
TEST_F(FileOwnership, AStoreInAStickyFolderOfAnotherUserIsRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "nothing can be given to another user";
    ASSERT_EQ(chown(root().c_str(), stranger, stranger), 0);
    ASSERT_EQ(chmod(root().c_str(), 01777), 0);
    const auto opened = try_open(clock_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::store_unsafe);
    EXPECT_TRUE(fs::is_empty(root()));
}

TEST_F(FileOwnership, AFolderUnderTwoNamesIsOneStore) {
    fill();
    fs::create_directory_symlink(root(), root() / "link");
    const auto other = open_file_store(*base::Url::parse("file:" + (root() / "link/store").string()), clock_);
    ASSERT_TRUE(other);
    EXPECT_EQ(refused(**other, acquire_of("x", Credentials::random())), Errc::lock_conflict);
    EXPECT_EQ((*other)->info().store_id, store_->info().store_id);
}

TEST_F(FileOwnership, AFolderMountedUnderAnotherNameIsOneStore) {
    fill();
    const fs::path elsewhere = root() / "elsewhere";
    fs::create_directory(elsewhere, dir());
    const int status = tests::in_own_mounts([&] {
        if (mount(dir().c_str(), elsewhere.c_str(), nullptr, MS_BIND, nullptr) != 0) return tests::no_mounts;
        const auto other = open_file_store(*base::Url::parse("file:" + elsewhere.string()), clock_);
        if (!other) return 1;
        // The guard is locked here, and is the same one there.
        const base::Fd fd(::open((folder_of("x") / "guard").c_str(), O_RDWR | O_CLOEXEC));
        const auto guard = base::FileLock::take(fd.get(), clock_, Deadline::never());
        const auto reply = (*other)->apply_one(holder_, Deadline{clock_.boottime()});
        return !reply && reply.error().code == Errc::store_unavailable ? 0 : 2;
    });
    if (status == tests::no_mounts) GTEST_SKIP() << not_here << "nothing can be mounted";
    EXPECT_EQ(status, 0);
}

// `cp -al` copies a store in no time, and leaves every file with two names.
TEST_F(FileOwnership, ACopyMadeOfLinksIsAnotherStoreAndSpoilsNothing) {
    fill();
    const fs::path copy = root() / "copy";
    fs::copy(dir(), copy, fs::copy_options::recursive | fs::copy_options::create_hard_links);
    const auto copied = open_file_store(*base::Url::parse("file:" + copy.string() + "?sync=off"), clock_);
    ASSERT_TRUE(copied);
    const auto events_of = [](Store& store) {
        return store.history({.name = lock_name("x")}, Deadline::never()).value();
    };
    for (int i = 0; i < 40; ++i) {
        static_cast<void>(granted(*store_, holder_));
        clock_.advance(1ms);
        static_cast<void>(granted(**copied, holder_));
        static_cast<void>(granted(**copied, holder_));
    }
    for (Store* store : {store_.get(), copied->get()}) {
        const auto status = store->inspect(lock_name("x"), Deadline::never());
        EXPECT_TRUE(verify_chain(events_of(*store), *status));
    }
    EXPECT_EQ(events_of(**copied).size(), events_of(*store_).size() + 40);
}

TEST_F(FileOwnership, BellsAreNotHungInAFolderOfAnotherUserNorBehindALink) {
    fill();
    const base::Doorbells bells((folder_of("x") / "bells").string());
    ASSERT_TRUE(base::Doorbell().hang(bells, holder_.as.lock_id));
    fs::remove_all(folder_of("x") / "bells");
    fs::create_directory(root() / "elsewhere");
    fs::create_directory_symlink(root() / "elsewhere", folder_of("x") / "bells");
    EXPECT_FALSE(base::Doorbell().hang(bells, holder_.as.lock_id));
    EXPECT_TRUE(fs::is_empty(root() / "elsewhere"));
}

}  // namespace
}  // namespace holdfast::stores::file
