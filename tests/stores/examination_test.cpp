// Goal: what `doctor` says of a store on this host is true. Method: each store, whole and then with one thing wrong.

#include "holdfast/open.hpp"
#include "sqlite_by_hand.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The finding of that name; a failed one that says so if there is none.
Finding finding_of(Store& store, std::string_view name) {
    for (Finding& finding : store.examine(Deadline::never()))
        if (finding.name == name) return finding;
    return {std::string(name), false, "nobody looked at it"};
}

/// On the stores that live in files.
class Examination : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] fs::path folder() const { return folder_.path() / "place"; }
    [[nodiscard]] std::string url() const {
        return GetParam() + ":" + (folder() / (GetParam() == "file" ? "locks" : "locks.db")).string();
    }
    [[nodiscard]] std::unique_ptr<Store> open() const { return must(open_store(url())); }
    void SetUp() override { fs::create_directory(folder(), folder_.path()); }
    void create() const { must(open()->apply_one(by_alice(lock("a")), Deadline::never())); }

    const TempFolder folder_;
};

TEST_P(Examination, FindsNothingWrongWithAHealthyStore) {
    const auto store = open();
    for (const Finding& finding : store->examine(Deadline::never()))
        EXPECT_TRUE(finding.ok) << finding.name << ": " << finding.detail;
    must(store->apply_one(by_alice(lock("a")), Deadline::never()));
    for (const char* name : {"rights", "free_space", "records", "format", "file_system"})
        EXPECT_TRUE(finding_of(*store, name).ok) << name << ": " << finding_of(*store, name).detail;
}

TEST_P(Examination, LeavesNoTrace) {
    create();
    const auto contents = [&] {
        auto found = contents_of(folder());
        // The index of SQLite's log is not data.
        std::erase_if(found, [](const auto& file) { return file.first.ends_with("-shm"); });
        return found;
    };
    const auto before = contents();
    const auto written = fs::last_write_time(folder());
    static_cast<void>(open()->examine(Deadline::never()));
    EXPECT_TRUE(contents() == before);
    EXPECT_EQ(fs::last_write_time(folder()), written);
}

TEST_P(Examination, FindsAFullDisk) {
    const int status = in_own_mounts([&] {
        if (mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=512k,mode=0700") != 0) return no_mounts;
        create();
        const auto store = open();
        std::ofstream ballast(folder() / "ballast", std::ios::binary);
        while (ballast << std::string(4096, 'x') << std::flush) {
        }
        const Finding found = finding_of(*store, "free_space");
        return !found.ok && found.detail.find("disk is full") != std::string::npos ? 0 : 1;
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "no small file system can be mounted";
    EXPECT_EQ(status, 0);
}

TEST_P(Examination, FindsThatTheFileSystemIsReadOnlyAndSoDoesAChange) {
    create();
    const int status = in_own_mounts([&] {
        if (mount(folder().c_str(), folder().c_str(), nullptr, MS_BIND, nullptr) != 0 ||
            mount(nullptr, folder().c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
            return no_mounts;
        const auto store = open();
        const Finding found = finding_of(*store, "free_space");
        if (found.ok || found.detail.find("read-only") == std::string::npos) return 1;
        const Reply reply = store->apply_one(by_bob(lock("b")), Deadline::never());
        if (reply || reply.error().code != Errc::store_unavailable) return 2;
        return reply.error().message.find("read-only") != std::string::npos ? 0 : 3;
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "nothing can be mounted";
    EXPECT_EQ(status, 0);
}

/// A store of ours that somebody else may read, seen by that user.
TEST_P(Examination, FindsThatThisUserMayNotWrite) {
    create();
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
        fs::permissions(entry.path(), entry.is_directory() ? fs::perms{0555} : fs::perms{0444});
    for (const fs::path& path : {folder_.path(), folder()}) fs::permissions(path, fs::perms{0555});
    constexpr int cannot_change = 77;
    Process child = Process::fork([&] {
        constexpr uid_t nobody = 65534;
        if (geteuid() == 0 && (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0))
            return cannot_change;
        const auto store = open_store(url());
        if (!store) return store.error().code == Errc::denied ? 0 : 2;
        const Finding found = finding_of(**store, "rights");
        return !found.ok && found.detail.find("cannot write") != std::string::npos ? 0 : 3;
    });
    const Exit exit = child.wait();
    for (const fs::path& path : {folder_.path(), folder()}) fs::permissions(path, fs::perms::owner_all);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
        fs::permissions(entry.path(), fs::perms::owner_all);
    if (exit == Exit{.status = cannot_change}) GTEST_SKIP() << not_here << "root cannot become another user";
    EXPECT_EQ(exit, Exit{.status = 0});
}

/// A store of ours that nobody else may read, seen by another user.
TEST_P(Examination, OfAStoreThatThisUserMayNotReadIsDenied) {
    create();
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
        fs::permissions(entry.path(), entry.is_directory() ? fs::perms{0711} : fs::perms{0600});
    for (const fs::path& path : {folder_.path(), folder()}) fs::permissions(path, fs::perms{0711});
    std::string message;
    const std::string answer = folder_.path() / "answer";
    std::ofstream(answer).close();
    fs::permissions(answer, fs::perms{0666});
    constexpr int cannot_change = 77;
    Process child = Process::fork([&] {
        constexpr uid_t nobody = 65534;
        if (geteuid() != 0) return cannot_change;
        if (setresgid(nobody, nobody, nobody) != 0 || setresuid(nobody, nobody, nobody) != 0) return cannot_change;
        const auto store = open_store(url());
        const auto status = store ? (*store)->inspect(lock("x"), Deadline::never()) : std::unexpected(store.error());
        if (status) return 1;
        std::ofstream(answer) << status.error().message;
        return status.error().code == Errc::denied ? 0 : 2;
    });
    const Exit exit = child.wait();
    if (exit == Exit{.status = cannot_change}) GTEST_SKIP() << not_here << "root cannot become another user";
    std::ifstream in(answer);
    std::getline(in, message);
    EXPECT_EQ(exit, Exit{.status = 0}) << message;
    EXPECT_THAT(message, testing::HasSubstr("Permission denied"));
}

INSTANTIATE_TEST_SUITE_P(Stores, Examination, testing::Values("file", "sqlite"),
                         [](const auto& test) { return test.param; });

class SqliteExamination : public testing::Test {
protected:
    [[nodiscard]] fs::path file() const { return folder_.path() / "locks.db"; }
    void SetUp() override {
        for (const char* name : {"first", "second"}) must(store_->apply_one(by_alice(lock(name)), Deadline::never()));
    }
    Finding finding(std::string_view name) { return finding_of(*store_, name); }

    const TempFolder folder_;
    const std::unique_ptr<Store> store_ = must(open_store("sqlite:" + file().string()));
};

TEST_F(SqliteExamination, NamesTheFormat) {
    EXPECT_EQ(finding("format").detail, ByHand(file()).column("PRAGMA user_version").at(0));
}

TEST_F(SqliteExamination, NamesALockWhoseRecordCannotBeRead) {
    ASSERT_EQ(ByHand(file()).execute("UPDATE holdfast_locks SET holder = 'mallory' WHERE name = 'second'"), SQLITE_OK);
    EXPECT_FALSE(finding("records").ok);
    EXPECT_THAT(finding("records").detail, HasSubstr("second"));
}

TEST_F(SqliteExamination, NamesALockThatLostItsRecord) {
    ByHand other(file());
    ASSERT_EQ(other.execute("DROP TRIGGER holdfast_locks_stay; DELETE FROM holdfast_locks WHERE name = 'second'"),
              SQLITE_OK);
    EXPECT_FALSE(finding("records").ok);
    EXPECT_THAT(finding("records").detail, HasSubstr("second"));
}

TEST_F(SqliteExamination, NamesALockWhoseQueueCannotBeRead) {
    must(store_->apply({}, Deadline::never()));
    EXPECT_THAT(store_->apply_one(queued(by_bob(lock("first"))), Deadline::never()), RefusedWith(Errc::lock_conflict));
    ASSERT_EQ(ByHand(file()).execute("UPDATE holdfast_queue SET crc = crc + 1"), SQLITE_OK);
    EXPECT_FALSE(finding("records").ok);
    EXPECT_THAT(finding("records").detail, HasSubstr("first"));
}

}  // namespace
}  // namespace holdfast::tests
