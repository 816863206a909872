// Goal: the SQLite store's files are made safely, left alone when they are not ours, and never changed by
// a reader. Method: a real folder, looked at from outside between the calls.

#include "base/file_lock.hpp"
#include "holdfast/open.hpp"
#include "sqlite_by_hand.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;

/// Of SQLite's log; what is not longer has no content.
constexpr std::size_t log_header = 32;

class SqliteFiles : public testing::Test {
protected:
    [[nodiscard]] fs::path file() const { return folder_.path() / "locks.db"; }
    [[nodiscard]] std::string url() const { return "sqlite:" + file().string(); }
    [[nodiscard]] std::unique_ptr<Store> open() const { return must(open_store(url())); }
    [[nodiscard]] fs::path log() const { return file().string() + "-wal"; }
    [[nodiscard]] fs::path index() const { return file().string() + "-shm"; }
    /// The index of the log is not data: SQLite builds it anew from the log.
    [[nodiscard]] auto data_of_the_folder() const {
        auto contents = contents_of(folder_.path());
        contents.erase(index());
        return contents;
    }
    void read_everything() const {
        const auto store = open();
        EXPECT_EQ(must(store->inspect(lock("a"), Deadline::never())).state, LockState::held);
        EXPECT_EQ(must(store->list({}, Deadline::never())).size(), 1U);
        EXPECT_EQ(must(store->history({}, Deadline::never())).size(), 1U);
        static_cast<void>(store->examine(Deadline::never()));
    }
    static void create(Store& store) { static_cast<void>(must(store.apply({}, Deadline::never()))); }

    static mode_t mode_of(const fs::path& path) {
        struct stat found{};
        return lstat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
    }

    const TempFolder folder_;
};

/// Undoes itself, because the umask belongs to the whole process.
class Umask {
public:
    explicit Umask(mode_t mask) : before_(umask(mask)) {}
    Umask(const Umask&) = delete;
    Umask& operator=(const Umask&) = delete;
    ~Umask() { umask(before_); }

private:
    mode_t before_;
};

TEST_F(SqliteFiles, OpeningAndReadingCreateNothing) {
    const auto store = open();
    EXPECT_EQ(must(store->inspect(lock("a"), Deadline::never())).token.value, 0U);
    EXPECT_TRUE(must(store->list({}, Deadline::never())).empty());
    EXPECT_TRUE(must(store->history({}, Deadline::never())).empty());
    EXPECT_FALSE(store->info().store_id);
    EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(SqliteFiles, AnEmptyBatchCreatesTheStore) {
    const auto store = open();
    create(*store);
    EXPECT_TRUE(store->info().store_id);
    EXPECT_EQ(must(open_store(url()))->info().store_id, store->info().store_id);
}

// In a row that older versions do not read.
TEST_F(SqliteFiles, TheFirstLockIsNotedWithItAndWhereTheNoteIsMissingTheNextOneIs) {
    const auto rows = [&] { return ByHand(file()).column("SELECT id FROM holdfast_meta ORDER BY id"); };
    const std::vector<std::string> unmarked{"1"};
    const std::vector<std::string> marked{"1", "2"};
    create(*open());
    EXPECT_EQ(rows(), unmarked);
    EXPECT_FALSE(open()->info().was_used);
    const Acquire alice = by_alice(lock("a"));
    const auto store = open();
    ASSERT_THAT(store->apply_one(alice, Deadline::never()), Granted());
    EXPECT_EQ(rows(), marked);
    EXPECT_TRUE(store->info().was_used);
    EXPECT_TRUE(open()->info().was_used);

    ASSERT_EQ(ByHand(file()).execute("DELETE FROM holdfast_meta WHERE id = 2"), SQLITE_OK);
    const auto later = open();
    ASSERT_THAT(later->apply_one(renewal(alice), Deadline::never()), Granted());
    EXPECT_EQ(rows(), unmarked) << "a change of a lock that is there costs no other";
    for (const char* name : {"b", "c"}) ASSERT_THAT(later->apply_one(by_bob(lock(name)), Deadline::never()), Granted());
    EXPECT_EQ(rows(), marked);
}

TEST_F(SqliteFiles, OnlyTheOwnerCanReadWhatIsCreatedWhateverTheUmask) {
    // One that takes nothing away, and one that takes away what the owner needs.
    for (const mode_t bits : {mode_t{0000}, mode_t{0777}}) {
        const Umask mask(bits);
        const fs::path deep = folder_.path() / std::to_string(bits) / "folder";
        auto store = must(open_store("sqlite:" + (deep / "locks.db").string()));
        ASSERT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
        EXPECT_EQ(mode_of(deep.parent_path()), 0700U);
        EXPECT_EQ(mode_of(deep), 0700U);
        for (const auto& entry : fs::directory_iterator(deep)) EXPECT_EQ(mode_of(entry.path()), 0600U) << entry.path();
    }
}

TEST_F(SqliteFiles, ClosingTheLastWriterLeavesEverythingInTheDatabaseFile) {
    auto store = open();
    ASSERT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    EXPECT_GT(fs::file_size(log()), log_header);
    store.reset();
    EXPECT_LT(fs::file_size(log()), log_header);
    const TempFolder other;
    fs::copy_file(file(), other.path() / "alone.db");
    const auto copy = must(open_store("sqlite:" + (other.path() / "alone.db").string()));
    EXPECT_EQ(must(copy->inspect(lock("a"), Deadline::never())).state, LockState::held);
}

TEST_F(SqliteFiles, AReaderChangesNoByte) {
    ASSERT_THAT(open()->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    const auto before = data_of_the_folder();
    read_everything();
    EXPECT_TRUE(data_of_the_folder() == before);
}

TEST_F(SqliteFiles, AReaderLeavesNoFileThatWasNotThere) {
    ASSERT_THAT(open()->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    // As after a backup was put in place.
    fs::remove(log());
    fs::remove(index());
    const auto before = contents_of(folder_.path());
    read_everything();
    EXPECT_TRUE(contents_of(folder_.path()) == before);
}

TEST_F(SqliteFiles, AReaderLeavesTheLogOfAKilledWriter) {
    Process writer = Process::fork([&] {
        const auto store = open();
        if (!store->apply_one(by_alice(lock("a")), Deadline::never())) return 1;
        _exit(0);  // Without closing anything.
    });
    ASSERT_EQ(writer.wait(), Exit{.status = 0});
    ASSERT_GT(fs::file_size(log()), log_header);
    const auto before = data_of_the_folder();
    EXPECT_EQ(must(open()->inspect(lock("a"), Deadline::never())).state, LockState::held);
    EXPECT_TRUE(data_of_the_folder() == before);
}

TEST_F(SqliteFiles, ARefusedRequestWritesNothing) {
    const auto store = open();
    ASSERT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    const auto before = bytes_of(log());
    EXPECT_THAT(store->apply_one(by_bob(lock("a")), Deadline::never()), RefusedWith(Errc::lock_conflict));
    EXPECT_TRUE(bytes_of(log()) == before);
}

TEST_F(SqliteFiles, ASymbolicLinkIsRefused) {
    open()->apply_one(by_alice(lock("a")), Deadline::never()).value();
    fs::rename(file(), folder_.path() / "real.db");
    fs::create_symlink(folder_.path() / "real.db", file());
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::store_unsafe));
}

TEST_F(SqliteFiles, ALinkedFolderIsFollowed) {
    fs::create_directory(folder_.path() / "real");
    fs::create_directory_symlink(folder_.path() / "real", folder_.path() / "link");
    const auto store = must(open_store("sqlite:" + (folder_.path() / "link" / "locks.db").string()));
    EXPECT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    EXPECT_TRUE(fs::exists(folder_.path() / "real" / "locks.db"));
}

TEST_F(SqliteFiles, AFileThatOthersCanWriteIsRefused) {
    create(*open());
    chmod(file().c_str(), 0620);
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::store_unsafe));
}

TEST_F(SqliteFiles, AFolderInWhichAnybodyCanSwapFilesIsRefused) {
    create(*open());
    chmod(folder_.path().c_str(), 0777);
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::store_unsafe));
    chmod(folder_.path().c_str(), 01777);
    EXPECT_THAT(open_store(url()), Granted());
}

TEST_F(SqliteFiles, AFileOfAnotherUserIsRefused) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "nothing can be given to another user";
    create(*open());
    ASSERT_EQ(chown(file().c_str(), 12345, 12345), 0);
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::store_unsafe));
}

TEST_F(SqliteFiles, ANewerFormatIsRefusedAndUntouched) {
    create(*open());
    ASSERT_EQ(ByHand(file()).execute("PRAGMA user_version = 4"), SQLITE_OK);
    const auto before = contents_of(folder_.path());
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::format_unsupported));
    EXPECT_TRUE(contents_of(folder_.path()) == before);
}

TEST_F(SqliteFiles, ADatabaseOfAnotherProgramIsRefusedAndUntouched) {
    ASSERT_EQ(ByHand(file()).execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)"), SQLITE_OK);
    chmod(file().c_str(), 0600);
    const auto before = contents_of(folder_.path());
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::format_unsupported));
    EXPECT_TRUE(contents_of(folder_.path()) == before);
}

TEST_F(SqliteFiles, AFileThatIsNoDatabaseIsRefusedAndUntouched) {
    write_bytes(file(), std::string(5000, 'x'));
    chmod(file().c_str(), 0600);
    const auto before = contents_of(folder_.path());
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::format_unsupported));
    EXPECT_TRUE(contents_of(folder_.path()) == before);
}

TEST_F(SqliteFiles, AnEmptyFileIsAStoreThatNobodyCreatedYet) {
    write_bytes(file(), "");
    chmod(file().c_str(), 0600);
    EXPECT_THAT(open()->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
}

TEST_F(SqliteFiles, AFileSwappedUnderAnOpenStoreIsNoticed) {
    const auto store = open();
    ASSERT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    const auto first = store->info().store_id;
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file().string() + suffix);
    ASSERT_THAT(open()->apply_one(by_bob(lock("a")), Deadline::never()), Granted());
    // Another store is there now, and bob holds the lock in it.
    EXPECT_THAT(store->apply_one(by_carol(lock("a")), Deadline::never()), RefusedWith(Errc::lock_conflict));
    EXPECT_NE(store->info().store_id, first);
}

TEST_F(SqliteFiles, WritesWorkAfterTheGateFileWasDeleted) {
    const auto store = open();
    create(*store);
    fs::remove(file().string() + "-gate");
    EXPECT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    EXPECT_TRUE(fs::exists(file().string() + "-gate"));
}

TEST_F(SqliteFiles, AWriteGivesUpAtItsDeadlineWhileAnotherProcessIsInTheGate) {
    const auto store = open();
    create(*store);
    const base::Fd gate(::open((file().string() + "-gate").c_str(), O_RDWR | O_CLOEXEC));
    const auto other = must(base::FileLock::take(gate.get(), host_clock(), Deadline::never()));
    const auto reply = store->apply_one(by_alice(lock("a")), Deadline::in(host_clock(), std::chrono::milliseconds{50}));
    EXPECT_THAT(reply, RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(must(store->inspect(lock("a"), Deadline::never())).seq, 0U);
}

/// How many pages of the log SQLite has moved into the database, as its index says for all processes.
std::uint32_t moved_pages(const fs::path& database) {
    const std::string index = bytes_of(database.string() + "-shm");
    constexpr std::size_t position = 96;
    std::uint32_t pages = 0;
    if (index.size() < position + sizeof pages) throw std::runtime_error("the log has no index");
    std::memcpy(&pages, index.data() + position, sizeof pages);
    return pages;
}

// Before 3.51.3, SQLite can lose what is committed while two connections move the log into the database. A process that
// is in the gate may be doing that, so nobody else does: not when it opens the store, nor reads, nor waits, nor closes
// it.
TEST_F(SqliteFiles, NobodyMovesTheLogWhileAnotherProcessIsInTheGate) {
    auto writer = open();
    ASSERT_THAT(writer->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    const base::Fd gate(::open((file().string() + "-gate").c_str(), O_RDWR | O_CLOEXEC));
    std::optional other(must(base::FileLock::take(gate.get(), host_clock(), Deadline::never())));
    const auto database = bytes_of(file());
    const auto before = bytes_of(log());
    ASSERT_FALSE(before.empty());
    const auto expect_untouched = [&](const char* after) {
        EXPECT_TRUE(bytes_of(file()) == database) << after;
        EXPECT_TRUE(bytes_of(log()) == before) << after;
        EXPECT_EQ(moved_pages(file()), 0U) << after;
    };
    const auto nap = [] { return Deadline::in(host_clock(), std::chrono::milliseconds{20}); };
    const auto read_and_wait = [&] {
        const auto reader = open();
        const LockStatus status = must(reader->inspect(lock("a"), Deadline::never()));
        EXPECT_EQ(must(reader->list({}, Deadline::never())).size(), 1U);
        EXPECT_EQ(must(reader->history({}, Deadline::never())).size(), 1U);
        EXPECT_THAT(reader->wait_for_change({lock("a"), status.seq, std::nullopt}, nap()), Granted());
        static_cast<void>(reader->examine(Deadline::never()));
    };
    read_and_wait();
    expect_untouched("a reader beside a writer");
    EXPECT_THAT(writer->apply_one(by_bob(lock("b")), nap()), RefusedWith(Errc::store_unavailable));
    writer.reset();
    expect_untouched("the writer's end");
    read_and_wait();
    expect_untouched("a reader alone");

    other.reset();
    EXPECT_THAT(open()->apply_one(by_bob(lock("b")), Deadline::never()), Granted());
    EXPECT_LT(fs::file_size(log()), log_header) << "now it was moved";
    EXPECT_EQ(must(open()->list({}, Deadline::never())).size(), 2U);
}

TEST_F(SqliteFiles, AnotherProgramInAWriteTransactionMeansUnavailable) {
    const auto store = open();
    create(*store);
    ByHand other(file());
    ASSERT_EQ(other.execute("BEGIN IMMEDIATE"), SQLITE_OK);
    EXPECT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), RefusedWith(Errc::store_unavailable));
    ASSERT_EQ(other.execute("ROLLBACK"), SQLITE_OK);
    EXPECT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
}

TEST_F(SqliteFiles, ManyWritesKeepTheLogSmall) {
    const auto store = must(open_store(url() + "?sync=off"));
    const Acquire request = by_alice(lock("a"));
    for (int i = 0; i < 2000; ++i) ASSERT_THAT(store->apply_one(request, Deadline::never()), Granted());
    EXPECT_LT(fs::file_size(log()), 8U << 20U);
}

TEST_F(SqliteFiles, TheUrlNamesAFileAndKnowsOneParameter) {
    EXPECT_THAT(open_store("sqlite:"), RefusedWith(Errc::usage));
    EXPECT_THAT(open_store("sqlite:folder/"), RefusedWith(Errc::usage));
    EXPECT_THAT(open_store(url() + "?sync=maybe"), RefusedWith(Errc::usage));
    EXPECT_THAT(open_store(url() + "?snyc=off"), RefusedWith(Errc::usage));
    EXPECT_EQ(must(open_store(url() + "?sync=off"))->info().grade, Grade::b);
}

TEST_F(SqliteFiles, ExamineFindsAHealthyStoreHealthy) {
    const auto store = open();
    ASSERT_THAT(store->apply_one(by_alice(lock("a")), Deadline::never()), Granted());
    for (const Finding& finding : store->examine(Deadline::never()))
        EXPECT_TRUE(finding.ok) << finding.name << ": " << finding.detail;
}

}  // namespace
}  // namespace holdfast::tests
