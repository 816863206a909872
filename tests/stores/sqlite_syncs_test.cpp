// Goal: what is spared of SQLite's syncs is what protects nothing: no lock changes, and no log is moved into the
// database, before the disk has all that it needs, nor by two at once. Method: a file layer under the store that writes
// down what it is asked for; a power cut would keep any part of what was written since the last sync.

#include "base/fd.hpp"
#include "holdfast/open.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace holdfast::tests {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// `log write`, `log header`, `log sync`, `folder sync`, `database write`, `database sync`; equal neighbours once. A
/// write to the database while nobody is in the gate is `stray database write`.
std::vector<std::string>& seen() {
    static std::vector<std::string> all;
    return all;
}

void see(const std::string& what) {
    if (seen().empty() || seen().back() != what) seen().push_back(what);
}

std::vector<std::string> take_seen() { return std::exchange(seen(), {}); }

struct Opened {
    std::string name;
    std::string path;
    const sqlite3_io_methods* methods = nullptr;
};

sqlite3_vfs* real_vfs = nullptr;
std::map<const sqlite3_file*, Opened> opened;
std::map<const sqlite3_io_methods*, sqlite3_io_methods> noting;

bool somebody_is_in_the_gate_of(const std::string& database) {
    const base::Fd gate(open((database + "-gate").c_str(), O_RDWR | O_CLOEXEC));
    struct flock asked{};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    return gate && fcntl(gate.get(), F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
}

int note_write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
    const auto& [name, path, methods] = opened[file];
    if (name == "log")
        see(at == 0 ? "log header" : "log write");
    else
        see(somebody_is_in_the_gate_of(path) ? "database write" : "stray database write");
    return methods->xWrite(file, bytes, size, at);
}

int note_sync(sqlite3_file* file, int flags) {
    const Opened& self = opened[file];
    see(self.name + " sync");
    return self.methods->xSync(file, flags);
}

/// Happens once, when the next log is opened.
std::function<void()> meanwhile;

int open_noting(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* flags_out) {
    const int rc = real_vfs->xOpen(real_vfs, path, file, flags, flags_out);
    const bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (is_log && meanwhile) std::exchange(meanwhile, nullptr)();
    if (rc != SQLITE_OK || (!is_log && (flags & SQLITE_OPEN_MAIN_DB) == 0)) return rc;
    opened[file] = {is_log ? "log" : "database", path, file->pMethods};
    auto& methods = noting.try_emplace(file->pMethods, *file->pMethods).first->second;
    methods.xWrite = note_write;
    methods.xSync = note_sync;
    file->pMethods = &methods;
    return rc;
}

}  // namespace
}  // namespace holdfast::tests

/// In the place of the C library's: SQLite syncs a folder without its file layer.
extern "C" int fdatasync(int fd) {
    struct stat found{};
    if (fstat(fd, &found) == 0 && S_ISDIR(found.st_mode)) holdfast::tests::see("folder sync");
    return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace holdfast::tests {
namespace {

class SqliteSyncs : public testing::Test {
protected:
    static void SetUpTestSuite() {
        real_vfs = sqlite3_vfs_find(nullptr);
        static sqlite3_vfs vfs = *real_vfs;
        vfs.zName = "noting";
        vfs.xOpen = open_noting;
        ASSERT_EQ(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
    }

    SqliteSyncs() {
        must(open()->apply_one(by_alice(lock("bystander")), Deadline::never()));
        take_seen();
    }

    [[nodiscard]] std::unique_ptr<Store> open(const std::string& parameters = "") const {
        return must(open_store("sqlite:" + (folder_.path() / "locks.db").string() + parameters, clock_));
    }
    [[nodiscard]] std::filesystem::path log() const { return folder_.path() / "locks.db-wal"; }

    const TempFolder folder_;
    ManualClock clock_;
    const LockName name_ = lock("a");
};

TEST_F(SqliteSyncs, AChangeOfALockIsOnTheDiskWhenItIsAnswered) {
    const auto store = open();
    const Acquire first = by_alice(name_);
    must(store->apply_one(first, Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log header", "log write", "log sync", "folder sync"));
    must(store->apply_one(Renew{name_, first.as, first.ttl}, Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync"));
    must(store->apply_one(release(first), Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync"));
}

TEST_F(SqliteSyncs, ANewLogHasANameOnTheDiskWhenItsFirstChangeIsAnswered) {
    std::filesystem::remove(log());
    const auto store = open();
    must(store->apply_one(by_alice(name_), Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log header", "log write", "log sync", "folder sync"));
    must(store->apply_one(by_bob(lock("b")), Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync"));
}

TEST_F(SqliteSyncs, ALogThatWasMadeWithoutSyncsIsSyncedByTheFirstDurableWriter) {
    std::filesystem::remove(log());
    const Acquire first = by_alice(name_);
    must(open("?sync=off")->apply_one(first, Deadline::never()));
    take_seen();
    must(open()->apply_one(release(first), Deadline::never()));
    EXPECT_THAT(take_seen(),
                ElementsAre("log header", "log write", "log sync", "folder sync", "database write", "database sync"));
}

TEST_F(SqliteSyncs, AReaderSyncsNothing) {
    static_cast<void>(open()->inspect(name_, Deadline::never()));
    EXPECT_THAT(take_seen(), IsEmpty());
}

TEST_F(SqliteSyncs, ALogOfWhichTheDiskHasAllIsMovedWithoutAnother) {
    auto store = open();
    must(store->apply_one(by_alice(name_), Deadline::never()));
    take_seen();
    store.reset();
    EXPECT_THAT(take_seen(), ElementsAre("database write", "database sync"));
}

TEST_F(SqliteSyncs, APlaceInTheQueueIsNotWorthASyncAndTheNextChangeTakesItAlong) {
    const auto store = open();
    const Acquire first = by_alice(name_);
    must(store->apply_one(first, Deadline::never()));
    take_seen();
    ASSERT_THAT(store->apply_one(queued(by_bob(name_)), Deadline::never()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(take_seen(), ElementsAre("log write"));
    must(store->apply_one(release(first), Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync"));
}

TEST_F(SqliteSyncs, ALogWithAnUnsyncedPlaceIsSyncedBeforeItIsMoved) {
    auto store = open();
    must(store->apply_one(by_alice(name_), Deadline::never()));
    ASSERT_THAT(store->apply_one(queued(by_bob(name_)), Deadline::never()), RefusedWith(Errc::lock_conflict));
    take_seen();
    store.reset();
    EXPECT_THAT(take_seen(), ElementsAre("log sync", "database write", "database sync"));
}

// SQLite's automatic checkpoint would be part of the commit that is spared its sync.
TEST_F(SqliteSyncs, ALogThatUnsyncedPlacesMadeLongIsSyncedBeforeItIsMoved) {
    const auto store = open();
    must(store->apply_one(by_alice(name_), Deadline::never()));
    take_seen();
    while (std::ranges::find(seen(), "database write") == seen().end())
        ASSERT_THAT(store->apply_one(queued(by_bob(name_)), Deadline::never()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync", "database write", "database sync"));
}

TEST_F(SqliteSyncs, WhatOthersWroteIntoTheLogIsSyncedBeforeItIsMoved) {
    auto store = open();
    must(store->apply_one(by_alice(name_), Deadline::never()));
    auto other = open();
    ASSERT_THAT(other->apply_one(queued(by_bob(name_)), Deadline::never()), RefusedWith(Errc::lock_conflict));
    other.reset();
    take_seen();
    store.reset();
    EXPECT_THAT(take_seen(), ElementsAre("log sync", "database write", "database sync"));
}

TEST_F(SqliteSyncs, AHeaderOverAnOlderLogIsSyncedBeforeItsFirstFrame) {
    const auto store = open();
    const Acquire first = by_alice(name_);
    must(store->apply_one(first, Deadline::never()));
    take_seen();
    // Long enough for the log to be moved and begun anew.
    for (int i = 0; i < 600; ++i) must(store->apply_one(Renew{name_, first.as, first.ttl}, Deadline::never()));
    const auto all = take_seen();
    const std::vector<std::string> begun{"log header", "log sync", "log write", "log sync"};
    EXPECT_NE(std::ranges::search(all, begun).begin(), all.end());
    const std::vector<std::string> moved{"log sync", "database write", "database sync"};
    EXPECT_NE(std::ranges::search(all, moved).begin(), all.end());
}

// Before 3.51.3, SQLite can lose what is committed while two connections move the log into the database, or while one
// moves it and another writes. Nobody can make the two meet on purpose; inside the gate they never do.
TEST_F(SqliteSyncs, NoLogIsMovedOutsideTheGate) {
    auto store = open();
    const Acquire first = by_alice(name_);
    must(store->apply_one(first, Deadline::never()));
    const auto moved = [] { return std::ranges::count(seen(), "database write"); };
    const auto strays = [] { return std::ranges::count(seen(), "stray database write"); };
    while (moved() + strays() == 0) must(store->apply_one(Renew{name_, first.as, first.ttl}, Deadline::never()));
    EXPECT_EQ(strays(), 0) << "of a log that has become long";

    must(store->apply_one(release(first), Deadline::never()));
    take_seen();
    static_cast<void>(open()->inspect(name_, Deadline::never()));
    store.reset();
    EXPECT_GT(moved(), 0);
    EXPECT_EQ(strays(), 0) << "of the last one who closes the store";
}

// A failed open has a connection to the database all the same, and may be the last one to close it.
TEST_F(SqliteSyncs, AFailedOpenMovesNoLog) {
    const std::filesystem::path file = folder_.path() / "locks.db";
    Process killed = Process::fork([&]() -> int {
        const auto store = open();
        must(store->apply_one(by_alice(name_), Deadline::never()));
        _exit(0);  // Without closing anything.
    });
    ASSERT_EQ(killed.wait(), Exit{.status = 0});
    meanwhile = [&] { std::filesystem::permissions(file, std::filesystem::perms{0620}); };
    EXPECT_THAT(open_store("sqlite:" + file.string(), clock_), RefusedWith(Errc::store_unsafe));
    EXPECT_THAT(take_seen(), IsEmpty());
    std::filesystem::permissions(file, std::filesystem::perms{0600});
    EXPECT_EQ(must(open()->inspect(name_, Deadline::never())).state, LockState::held);
}

}  // namespace
}  // namespace holdfast::tests
