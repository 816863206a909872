// Goal: what is spared of SQLite's syncs is what protects nothing: no lock changes, and no log is moved into the
// database, before the disk has all that it needs. Method: a file layer under the store that writes down what it is
// asked for; a power cut would keep any part of what was written since the last sync.

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace holdfast::tests {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// `log write`, `log header`, `log sync`, `database write`, `database sync`; equal neighbours once.
std::vector<std::string>& seen() {
    static std::vector<std::string> all;
    return all;
}

void see(const std::string& what) {
    if (seen().empty() || seen().back() != what) seen().push_back(what);
}

std::vector<std::string> take_seen() { return std::exchange(seen(), {}); }

sqlite3_vfs* real_vfs = nullptr;
std::map<const sqlite3_file*, std::pair<std::string, const sqlite3_io_methods*>> opened;
std::map<const sqlite3_io_methods*, sqlite3_io_methods> noting;

int note_write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
    const auto& [name, methods] = opened[file];
    see(name + (name == "log" && at == 0 ? " header" : " write"));
    return methods->xWrite(file, bytes, size, at);
}

int note_sync(sqlite3_file* file, int flags) {
    const auto& [name, methods] = opened[file];
    see(name + " sync");
    return methods->xSync(file, flags);
}

int open_noting(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* flags_out) {
    const int rc = real_vfs->xOpen(real_vfs, path, file, flags, flags_out);
    const bool is_log = (flags & SQLITE_OPEN_WAL) != 0;
    if (rc != SQLITE_OK || (!is_log && (flags & SQLITE_OPEN_MAIN_DB) == 0)) return rc;
    opened[file] = {is_log ? "log" : "database", file->pMethods};
    auto& methods = noting.try_emplace(file->pMethods, *file->pMethods).first->second;
    methods.xWrite = note_write;
    methods.xSync = note_sync;
    file->pMethods = &methods;
    return rc;
}

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

    [[nodiscard]] std::unique_ptr<Store> open() const {
        return must(open_store("sqlite:" + (folder_.path() / "locks.db").string(), clock_));
    }

    const TempFolder folder_;
    ManualClock clock_;
    const LockName name_ = lock("a");
};

TEST_F(SqliteSyncs, AChangeOfALockIsOnTheDiskWhenItIsAnswered) {
    const auto store = open();
    const Acquire first = by_alice(name_);
    must(store->apply_one(first, Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log header", "log write", "log sync"));
    must(store->apply_one(Renew{name_, first.as, first.ttl}, Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync"));
    must(store->apply_one(release(first), Deadline::never()));
    EXPECT_THAT(take_seen(), ElementsAre("log write", "log sync"));
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

}  // namespace
}  // namespace holdfast::tests
