// Goal: one database, many users at once: one store, one holder at a time, waiters woken in turn.
// Method: real threads and real processes on one file.

#include "holdfast/open.hpp"
#include "stores/sqlite_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using std::chrono::milliseconds;

class SqliteSharing : public testing::Test {
protected:
    [[nodiscard]] std::string url() const {
        return "sqlite:" + (folder_.path() / "sub" / "locks.db").string() + "?sync=off";
    }
    [[nodiscard]] std::unique_ptr<Store> open() const { return must(open_store(url())); }
    [[nodiscard]] std::filesystem::path bells() const { return folder_.path() / "sub" / "locks.db-wake"; }

    const TempFolder folder_;
};

TEST_F(SqliteSharing, ThreadsThatComeFirstTogetherMakeOneStore) {
    constexpr int users = 8;
    std::vector<std::optional<StoreId>> ids(users);
    {
        std::vector<std::jthread> threads;
        std::atomic<bool> go{false};
        for (int i = 0; i < users; ++i)
            threads.emplace_back([&, i] {
                const auto store = open();
                go.wait(false);
                if (store->apply({}, Deadline::never())) ids[static_cast<std::size_t>(i)] = store->info().store_id;
            });
        go = true;
        go.notify_all();
    }
    ASSERT_TRUE(ids[0]);
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 1U);
}

TEST_F(SqliteSharing, ABatchThatDoesNotFitIntoTheCacheIsWholeForOthers) {
    // SQLite writes some of its pages before the end, and then once more, and their frames get new checksums.
    constexpr std::size_t locks = 4000;
    std::vector<Request> acquires;
    for (std::size_t i = 0; i < locks; ++i) acquires.emplace_back(by_alice(lock("many/" + std::to_string(i))));
    const auto writer = open();
    const auto reader = open();
    ASSERT_TRUE(writer->apply(acquires, Deadline::never()));
    EXPECT_EQ(must(reader->list({}, Deadline::never())).size(), locks);

    // What a process finds that comes after the others were killed. Copied by another process: closing the file here
    // would drop SQLite's locks on it.
    const auto left = folder_.path() / "left";
    std::filesystem::create_directory(left);
    Process copying = Process::fork([&] {
        for (const std::string name : {"locks.db", "locks.db-wal"})
            std::filesystem::copy_file(folder_.path() / "sub" / name, left / name);
        return 0;
    });
    ASSERT_EQ(copying.wait(), Exit{.status = 0});
    const auto found = must(open_store("sqlite:" + (left / "locks.db").string()));
    EXPECT_EQ(must(found->list({}, Deadline::never())).size(), locks);
    for (const Finding& finding : found->examine(Deadline::never()))
        EXPECT_TRUE(finding.ok || finding.name != "integrity") << finding.detail;
}

TEST_F(SqliteSharing, ABatchOfAMegabyteIsSynced) {
    std::vector<Request> acquires;
    for (int i = 0; i < 1000; ++i) acquires.emplace_back(by_alice(lock("many/" + std::to_string(i))));
    const auto store = must(open_store("sqlite:" + (folder_.path() / "synced.db").string()));
    for (const Reply& reply : must(store->apply(acquires, Deadline::never()))) ASSERT_THAT(reply, Granted());
}

TEST_F(SqliteSharing, ProcessesThatComeFirstTogetherMakeOneStore) {
    for (int round = 0; round < scaled(5); ++round) {
        std::filesystem::remove_all(folder_.path() / "sub");
        std::vector<Process> users;
        for (int i = 0; i < 6; ++i)
            users.push_back(Process::fork([&] {
                wait_for_end_of_input();
                const auto store = open();
                const auto reply = store->apply_one(by("p" + std::to_string(getpid()), lock("l"), milliseconds{60000}),
                                                    Deadline::never());
                if (!store->info().store_id) return 1;
                print_now(store->info().store_id->text() + (reply ? " granted\n" : " refused\n"));
                return 0;
            }));
        for (Process& user : users) user.close_input();
        std::set<std::string> ids;
        int granted = 0;
        for (Process& user : users) {
            const std::string line = user.read_line();
            ids.insert(line.substr(0, 36));
            granted += line.find("granted") != std::string::npos ? 1 : 0;
            EXPECT_EQ(user.wait(), Exit{.status = 0});
        }
        EXPECT_EQ(ids.size(), 1U);
        EXPECT_EQ(granted, 1);
    }
}

TEST_F(SqliteSharing, TwoStoresOnOneFileNeverGrantTwice) {
    const int rounds = scaled(200);
    std::atomic<int> inside{0};
    std::atomic<int> doubles{0};
    std::atomic<int> grants{0};
    {
        std::vector<std::jthread> threads;
        const auto shared = open();
        const auto another = open();
        for (Store* store : {shared.get(), shared.get(), another.get(), another.get()})
            threads.emplace_back([&, store] {
                for (int i = 0; i < rounds; ++i) {
                    const Acquire request = by_alice(lock("l"));
                    if (!store->apply_one(request, Deadline::never())) continue;
                    if (inside.fetch_add(1) != 0) ++doubles;
                    ++grants;
                    --inside;
                    EXPECT_THAT(store->apply_one(release(request), Deadline::never()), Granted());
                }
            });
        threads.clear();
    }
    EXPECT_EQ(doubles, 0);
    EXPECT_GT(grants, 0);
    const auto store = open();
    EXPECT_THAT(verify_chain(must(store->history({.name = lock("l")}, Deadline::never())),
                             must(store->inspect(lock("l"), Deadline::never()))),
                Granted());
}

// A transaction that begins with reading cannot write once somebody else has, and is refused at once, however long it
// would be willing to wait.
TEST_F(SqliteSharing, AnotherProgramThatWritesAllTheTimeRefusesNobody) {
    const auto store = open();
    must(store->apply({}, Deadline::never()));
    std::atomic<int> written{0};
    std::atomic<int> wanted{0};
    const std::jthread other([&](const std::stop_token& stop) {
        ByHand shell(folder_.path() / "sub" / "locks.db");
        if (shell.execute("PRAGMA busy_timeout = 10000; CREATE TABLE other (x)") != SQLITE_OK) std::abort();
        // Once for each call of the store, so that it gets its turn.
        while (!stop.stop_requested())
            if (written < wanted && shell.execute("INSERT INTO other VALUES (1)") == SQLITE_OK) ++written;
    });
    const Acquire mine = by_alice(lock("l"));
    for (const int enough = scaled(20); written < enough;) {
        wanted = written + 1;
        ASSERT_THAT(store->apply_one(mine, Deadline::never()), Granted()) << "after " << written << " writes";
    }
}

TEST_F(SqliteSharing, AReleaseWakesTheFirstInLine) {
    const auto holder = open();
    const auto waiter = open();
    const Acquire held = by_alice(lock("l"));
    ASSERT_THAT(holder->apply_one(held, Deadline::never()), Granted());
    const Acquire wanted = queued(by_bob(lock("l")));
    const auto refused = waiter->apply_one(wanted, Deadline::never());
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    std::jthread releaser([&] {
        // The bell is there once the waiter is about to sleep.
        while (!std::filesystem::exists(bells() / wanted.as.lock_id.text())) std::this_thread::yield();
        EXPECT_THAT(holder->apply_one(release(held), Deadline::never()), Granted());
    });
    // Without a wake-up this returns only at the test's own time limit.
    ASSERT_THAT(waiter->wait_for_change({lock("l"), refused.error().holder->seq, wanted.as.lock_id}, Deadline::never()),
                Granted());
    EXPECT_THAT(waiter->apply_one(wanted, Deadline::never()), Granted());
}

TEST_F(SqliteSharing, TheSecondWaiterSleepsOn) {
    const auto store = open();
    const auto waiter = open();
    const Acquire held = by_alice(lock("l"));
    ASSERT_THAT(store->apply_one(held, Deadline::never()), Granted());
    ASSERT_THAT(store->apply_one(queued(by_bob(lock("l"))), Deadline::never()), RefusedWith(Errc::lock_conflict));
    const Acquire second = queued(by_carol(lock("l")));
    ASSERT_THAT(waiter->apply_one(second, Deadline::never()), RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(store->apply_one(release(held), Deadline::never()), Granted());
    const std::uint64_t seq = must(store->inspect(lock("l"), Deadline::never())).seq;

    std::atomic<bool> returned{false};
    const Deadline limit = Deadline::in(host_clock(), milliseconds{300});
    std::jthread sleeper([&] {
        EXPECT_THAT(waiter->wait_for_change({lock("l"), seq, second.as.lock_id}, limit), Granted());
        returned = limit.passed(host_clock());
    });
    // Things happen to other locks, and to this one's queue behind the second place.
    for (int i = 0; i < 20; ++i) {
        ASSERT_THAT(store->apply_one(by_alice(lock("other" + std::to_string(i))), Deadline::never()), Granted());
        ASSERT_THAT(store->apply_one(queued(by_alice(lock("l"))), Deadline::never()), RefusedWith(Errc::lock_conflict));
    }
    sleeper.join();
    EXPECT_TRUE(returned) << "woken although somebody else is first";
}

TEST_F(SqliteSharing, CancellingTheFirstPlaceWakesTheSecond) {
    const auto store = open();
    const auto waiter = open();
    const Acquire held = by_alice(lock("l"));
    const Acquire first = queued(by_bob(lock("l")));
    const Acquire second = queued(by_carol(lock("l")));
    ASSERT_THAT(store->apply_one(held, Deadline::never()), Granted());
    ASSERT_THAT(store->apply_one(first, Deadline::never()), RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(waiter->apply_one(second, Deadline::never()), RefusedWith(Errc::lock_conflict));
    const Break stuck{lock("l"), held.as.lock_id, "operator", "stuck"};
    ASSERT_THAT(store->apply_one(stuck, Deadline::never()), Granted());
    const std::uint64_t seq = must(store->inspect(lock("l"), Deadline::never())).seq;
    std::atomic<bool> done{false};
    std::jthread sleeper([&] {
        const auto woken = waiter->wait_for_change({lock("l"), seq, second.as.lock_id}, Deadline::never());
        EXPECT_THAT(woken, Granted());
        done = true;
    });
    // Repeated, because the sleeper may not be asleep yet when the first one goes.
    while (!done) {
        ASSERT_THAT(store->apply_one(cancel(first), Deadline::never()), Granted());
        ASSERT_THAT(store->apply_one(queued(first), Deadline::never()), RefusedWith(Errc::lock_conflict));
        ASSERT_THAT(store->apply_one(cancel(first), Deadline::never()), Granted());
        std::this_thread::yield();
    }
}

TEST_F(SqliteSharing, AWatcherWithoutAPlaceHearsOfAnyChangeOfItsLock) {
    const auto store = open();
    const auto watcher = open();
    ASSERT_THAT(store->apply_one(by_alice(lock("other")), Deadline::never()), Granted());
    std::jthread changer([&] { EXPECT_THAT(store->apply_one(by_alice(lock("l")), Deadline::never()), Granted()); });
    EXPECT_THAT(watcher->wait_for_change({lock("l"), 0, std::nullopt}, Deadline::never()), Granted());
}

TEST_F(SqliteSharing, AWatcherOfAStoreThatDoesNotExistYetHearsOfItsFirstGrant) {
    const auto store = open();
    const auto watcher = open();
    std::jthread changer([&] { EXPECT_THAT(store->apply_one(by_alice(lock("l")), Deadline::never()), Granted()); });
    EXPECT_THAT(watcher->wait_for_change({lock("l"), 0, std::nullopt}, Deadline::never()), Granted());
}

TEST_F(SqliteSharing, NoBellOutlivesItsTicket) {
    const auto store = open();
    const Acquire held = by_alice(lock("l"));
    const Acquire wanted = queued(by_bob(lock("l")));
    ASSERT_THAT(store->apply_one(held, Deadline::never()), Granted());
    ASSERT_THAT(store->apply_one(wanted, Deadline::never()), RefusedWith(Errc::lock_conflict));
    const auto watching = must(store->subscribe({lock("l"), 1, wanted.as.lock_id}, [](const auto&) {}));
    while (!std::filesystem::exists(bells() / wanted.as.lock_id.text())) std::this_thread::yield();
    ASSERT_THAT(store->apply_one(cancel(wanted), Deadline::never()), Granted());
    EXPECT_TRUE(std::filesystem::is_empty(bells()));
}

}  // namespace
}  // namespace holdfast::tests
