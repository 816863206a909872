// Goal: the store's folder is ours alone, is made once, and is never mistaken for another.
// Method: real folders with every wrong mode, link, owner and content that we can make.

#include "file_fixture.hpp"
#include "holdfast/audit.hpp"
#include "support/isolation.hpp"

#include <barrier>
#include <fcntl.h>
#include <set>
#include <sys/wait.h>
#include <thread>

namespace holdfast::stores::file {
namespace {

using FileFolder = FileStoreTest;

/// Restores the umask of the process.
class Umask {
public:
    explicit Umask(mode_t mask) : before_(umask(mask)) {}
    Umask(const Umask&) = delete;
    Umask& operator=(const Umask&) = delete;
    ~Umask() { umask(before_); }

private:
    mode_t before_;
};

void fill_with_everything(Store& store) {
    const auto as = Credentials::random();
    std::vector<Request> requests{acquire_of("x", as)};
    for (int i = 0; i < 20; ++i) requests.emplace_back(Renew{lock_name("x"), as, ttl(30s)});
    for (const Request& request : requests) ASSERT_TRUE(store.apply_one(request, Deadline::never()));
    Acquire waiting = acquire_of("x", Credentials::random());
    waiting.ticket = ttl(10s);
    ASSERT_FALSE(store.apply_one(waiting, Deadline::never()));
}

TEST_F(FileFolder, OpeningAndLookingCreateNothing) {
    const auto store = open();
    EXPECT_FALSE(store->info().store_id);
    const auto status = store->inspect(lock_name("x"), Deadline::never());
    ASSERT_TRUE(status);
    EXPECT_EQ(status->state, LockState::free);
    EXPECT_EQ(status->token, FencingToken{});
    EXPECT_TRUE(store->list({.with_free = true}, Deadline::never())->empty());
    EXPECT_TRUE(store->history({}, Deadline::never())->empty());
    EXPECT_FALSE(store->examine(Deadline::never()).empty());
    EXPECT_FALSE(std::filesystem::exists(dir()));
}

TEST_F(FileFolder, AnEmptyBatchCreatesTheStore) {
    const auto store = open();
    ASSERT_TRUE(store->apply({}, Deadline::never()));
    const auto id = store->info().store_id;
    ASSERT_TRUE(id);
    EXPECT_EQ(open()->info().store_id, id);
}

TEST_F(FileFolder, TheFirstLockLeavesAMarkAndWhereItIsMissingTheNextChangeDoes) {
    const auto store = open();
    ASSERT_TRUE(store->apply({}, Deadline::never()));
    ASSERT_FALSE(store->apply_one(Renew{lock_name("x"), Credentials::random(), ttl(30s)}, Deadline::never()));
    EXPECT_FALSE(std::filesystem::exists(dir() / "used"));
    EXPECT_FALSE(store->info().was_used);
    const auto as = Credentials::random();
    ASSERT_TRUE(store->apply_one(acquire_of("x", as), Deadline::never()));
    EXPECT_EQ(content_of(dir() / "used"), "");
    EXPECT_TRUE(store->info().was_used);

    std::filesystem::remove(dir() / "used");
    EXPECT_FALSE(store->info().was_used);
    ASSERT_TRUE(open()->apply_one(Renew{lock_name("x"), as, ttl(30s)}, Deadline::never()));
    EXPECT_TRUE(open()->info().was_used);
}

TEST_F(FileFolder, ModesAreTightWhateverTheUmask) {
    for (const mode_t mask : {mode_t{0000}, mode_t{0022}, mode_t{0077}, mode_t{0377}, mode_t{0777}}) {
        std::filesystem::remove_all(dir());
        const Umask scoped(mask);
        auto url = base::Url::parse("file:" + (dir() / "deep" / "er").string() + "?sync=off");
        const auto store = open_file_store(*url, clock_);
        ASSERT_TRUE(store);
        fill_with_everything(**store);
        std::size_t seen = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root())) {
            struct stat info{};
            ASSERT_EQ(lstat(entry.path().c_str(), &info), 0);
            EXPECT_EQ(info.st_mode & 07777, S_ISDIR(info.st_mode) ? 0700U : 0600U) << entry.path();
            ++seen;
        }
        EXPECT_GE(seen, 11U);
    }
}

TEST_F(FileFolder, AFolderThatOthersCanWriteToIsRefused) {
    const auto store = open();
    ASSERT_TRUE(store->apply({}, Deadline::never()));
    for (const mode_t mode : {mode_t{0770}, mode_t{0702}, mode_t{01777}}) {
        ASSERT_EQ(chmod(dir().c_str(), mode), 0);
        EXPECT_EQ(try_open(clock_).error().code, Errc::store_unsafe);
        EXPECT_EQ(store->inspect(lock_name("x"), Deadline::never()).error().code, Errc::store_unsafe);
        EXPECT_EQ(store->apply({}, Deadline::never()).error().code, Errc::store_unsafe);
    }
    ASSERT_EQ(chmod(dir().c_str(), 0755), 0);
    EXPECT_TRUE(try_open(clock_));
    ASSERT_EQ(chmod((dir() / "locks").c_str(), 0777), 0);
    EXPECT_EQ(refused(*store, acquire_of("x", Credentials::random())), Errc::store_unsafe);
}

TEST_F(FileFolder, AFolderOfSomebodyElseIsRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "nothing can be given to another user";
    ASSERT_TRUE(open()->apply({}, Deadline::never()));
    ASSERT_EQ(chown(dir().c_str(), 12345, 12345), 0);
    EXPECT_EQ(try_open(clock_).error().code, Errc::store_unsafe);
}

TEST_F(FileFolder, SymbolicLinksAreRefusedWhereverTheyAre) {
    const auto elsewhere = root() / "elsewhere";
    std::filesystem::create_directory(elsewhere);
    std::filesystem::create_directory_symlink(elsewhere, dir());
    EXPECT_EQ(try_open(clock_).error().code, Errc::store_unsafe);
    auto with_slash = base::Url::parse("file:" + dir().string() + "//./");
    EXPECT_EQ(open_file_store(*with_slash, clock_).error().code, Errc::store_unsafe);
    EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
    std::filesystem::remove(dir());

    const auto store = open();
    fill_with_everything(*store);
    for (const char* file : {"record", "guard", "queue"}) {
        const auto path = folder_of("x") / file;
        const auto moved = elsewhere / file;
        std::filesystem::rename(path, moved);
        std::filesystem::create_symlink(moved, path);
        const auto before = snapshot(elsewhere);
        EXPECT_EQ(refused(*store, acquire_of("x", Credentials::random())), Errc::store_unsafe) << file;
        EXPECT_EQ(snapshot(elsewhere), before) << file;
        std::filesystem::remove(path);
        std::filesystem::rename(moved, path);
    }
    EXPECT_EQ(refused(*store, acquire_of("x", Credentials::random())), Errc::lock_conflict);
}

TEST_F(FileFolder, AFifoInPlaceOfARecordIsRefusedAndDoesNotHang) {
    const auto store = open();
    fill_with_everything(*store);
    std::filesystem::remove(folder_of("x") / "record");
    ASSERT_EQ(mkfifo((folder_of("x") / "record").c_str(), 0600), 0);
    EXPECT_EQ(refused(*store, acquire_of("x", Credentials::random())), Errc::store_unsafe);
}

TEST_F(FileFolder, AFileInPlaceOfTheFolderIsRefused) {
    write_file(dir(), "hello");
    EXPECT_EQ(try_open(clock_).error().code, Errc::store_unsafe);
    EXPECT_EQ(content_of(dir()), "hello");
}

TEST_F(FileFolder, AFolderWithOtherContentIsRefusedAndUntouched) {
    const auto store = open();
    std::filesystem::create_directory(dir());
    ASSERT_EQ(chmod(dir().c_str(), 0755), 0);
    for (const char* content : {"thesis.txt", ".profile", ".format", "locks", "used"}) {
        write_file(dir() / content, "three years");
        const auto before = snapshot(root());
        ASSERT_FALSE(try_open(clock_)) << content;
        EXPECT_EQ(try_open(clock_).error().code, Errc::format_unsupported) << content;
        EXPECT_EQ(store->apply({}, Deadline::never()).error().code, Errc::format_unsupported) << content;
        EXPECT_EQ(store->inspect(lock_name("x"), Deadline::never()).error().code, Errc::format_unsupported) << content;
        EXPECT_EQ(snapshot(root()), before) << content;
        std::filesystem::remove(dir() / content);
    }
}

TEST_F(FileFolder, AStoreThatCouldNotBeMadeAtFirstIsMadeLater) {
    const auto store = open();
    write_file(dir(), "in the way");
    EXPECT_EQ(store->apply({}, Deadline::never()).error().code, Errc::store_unsafe);
    std::filesystem::remove(dir());
    static_cast<void>(granted(*store, acquire_of("x", Credentials::random())));
}

TEST_F(FileFolder, AStoreThatLosesItsLocksWhileItIsUsedGrantsNothing) {
    const auto store = open();
    static_cast<void>(granted(*store, acquire_of("x", Credentials::random())));
    std::filesystem::remove_all(dir() / "locks");
    EXPECT_EQ(refused(*store, acquire_of("x", Credentials::random())), Errc::store_unavailable);
    EXPECT_FALSE(std::filesystem::exists(dir() / "locks"));
}

TEST_F(FileFolder, AStoreThatLostItsFormatFileIsNotMadeAnew) {
    const auto store = open();
    ASSERT_TRUE(store->apply({}, Deadline::never()));
    std::filesystem::remove(dir() / "format");
    EXPECT_EQ(store->apply({}, Deadline::never()).error().code, Errc::format_unsupported);
    EXPECT_FALSE(std::filesystem::exists(dir() / "format"));
}

TEST_F(FileFolder, ANewerFormatIsRefused) {
    ASSERT_TRUE(open()->apply({}, Deadline::never()));
    // As version 3 would write it, with the right checksum for `format 3` and this store_id.
    write_file(dir() / "format",
               "holdfast file store\nformat 3\nstore_id 00000000-0000-4000-8000-000000000000\ncrc32c ec48a2ab\n");
    EXPECT_EQ(try_open(clock_).error().code, Errc::format_unsupported);
    // One bit of version 2 has flipped: no newer Holdfast could read that.
    write_file(dir() / "format",
               "holdfast file store\nformat 6\nstore_id 00000000-0000-4000-8000-000000000000\ncrc32c f061bfaf\n");
    EXPECT_EQ(try_open(clock_).error().code, Errc::record_corrupt);
}

TEST_F(FileFolder, AnEmptyFolderIsAGoodPlace) {
    std::filesystem::create_directory(dir());
    ASSERT_EQ(chmod(dir().c_str(), 0700), 0);
    static_cast<void>(granted(*open(), acquire_of("x", Credentials::random())));
}

TEST_F(FileFolder, LeftoversOfACreationThatBrokeOffAreNoObstacle) {
    std::filesystem::create_directory(dir());
    ASSERT_EQ(chmod(dir().c_str(), 0700), 0);
    write_file(dir() / ".format-00000000-0000-4000-8000-000000000000", "hold");
    static_cast<void>(granted(*open(), acquire_of("x", Credentials::random())));
}

TEST_F(FileFolder, ThreadsThatCreateTheStoreAtOnceShareOneStore) {
    constexpr int threads = 8;
    for (int round = 0; round < 20; ++round) {
        std::filesystem::remove_all(dir());
        std::barrier start(threads);
        std::vector<std::optional<StoreId>> ids(threads);
        {
            std::vector<std::jthread> running;
            for (auto& id : ids)
                running.emplace_back([&] {
                    const auto store = open();
                    start.arrive_and_wait();
                    const auto applied = store->apply({}, Deadline::never());
                    EXPECT_TRUE(applied) << (applied ? "" : applied.error().message);
                    id = store->info().store_id;
                });
        }
        ASSERT_TRUE(ids[0]);
        for (const auto& id : ids) EXPECT_EQ(id, ids[0]);
        const std::set<std::filesystem::path> left(std::filesystem::directory_iterator{dir()},
                                                   std::filesystem::directory_iterator{});
        EXPECT_EQ(left, (std::set<std::filesystem::path>{dir() / "format", dir() / "locks"}));
    }
}

TEST_F(FileFolder, ProcessesThatCreateTheStoreAtOnceAllSucceed) {
    constexpr int processes = 8;
    const auto id_file = [&](int child) { return root() / ("id" + std::to_string(child)); };
    std::vector<pid_t> children;
    for (int child = 0; child < processes; ++child) {
        const pid_t pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            const auto store = try_open(clock_);
            if (!store || !(*store)->apply({}, Deadline::never())) _exit(1);
            write_file(id_file(child), (*store)->info().store_id->text());
            _exit(0);
        }
        children.push_back(pid);
    }
    for (const pid_t pid : children) {
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
    }
    for (int child = 0; child < processes; ++child)
        EXPECT_EQ(content_of(id_file(child)), open()->info().store_id->text());
}

TEST_F(FileFolder, AnEmptyPlaceAndUnknownParametersAreUsageErrors) {
    for (const char* text : {"file:", "file://", "file:x?sink=off", "file:x?sync=maybe"}) {
        auto url = base::Url::parse(text);
        ASSERT_TRUE(url) << text;
        const auto store = open_file_store(*url, clock_);
        ASSERT_FALSE(store) << text;
        EXPECT_EQ(store.error().code, Errc::usage) << text;
    }
}

TEST_F(FileFolder, ARelativePlaceIsMeantWhenTheStoreIsOpened) {
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(root());
    auto url = base::Url::parse("file:store?sync=off");
    const auto store = open_file_store(*url, clock_);
    std::filesystem::current_path(before);
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->apply({}, Deadline::never()));
    EXPECT_TRUE(std::filesystem::exists(dir() / "format"));
}

TEST_F(FileFolder, WithoutSyncingTheGradeIsLower) {
    const auto synced = try_open(clock_, "");
    ASSERT_TRUE(synced);
    const auto unsynced = try_open(clock_, "?sync=off");
    ASSERT_TRUE(unsynced);
    EXPECT_GE((*unsynced)->info().grade, Grade::b);
    EXPECT_GE((*unsynced)->info().reasons.size(), 1U);
    EXPECT_LE((*synced)->info().grade, (*unsynced)->info().grade);
}

TEST_F(FileFolder, AStoreInMemoryIsOfGradeB) {
    struct stat info{};
    if (stat("/dev/shm", &info) != 0) GTEST_SKIP() << tests::not_here << "there is no /dev/shm";
    auto url = base::Url::parse("file:/dev/shm/holdfast-does-not-exist/x");
    const auto store = open_file_store(*url, clock_);
    ASSERT_TRUE(store);
    EXPECT_EQ((*store)->info().grade, Grade::b);
}

TEST_F(FileFolder, ExaminationFindsADamagedRecord) {
    const auto store = open();
    fill_with_everything(*store);
    const auto record_finding = [&] {
        for (const Finding& finding : store->examine(Deadline::never()))
            if (finding.name == "records") return finding.ok;
        ADD_FAILURE() << "nobody looked at the records";
        return false;
    };
    EXPECT_TRUE(record_finding());
    write_file(folder_of("x") / "record", "x");
    EXPECT_FALSE(record_finding());
}

}  // namespace
}  // namespace holdfast::stores::file
