// Goal: clocks that are stepped, hosts that boot and disks that are full change nothing that they should
// not. Method: a manual clock, and a file system of a few pages.

#include "holdfast/open.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sys/mount.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class SqliteClock : public testing::Test {
protected:
    void reopen() {
        store_ = must(open_store("sqlite:" + (folder_.path() / "locks.db").string() + "?sync=off", clock_));
    }
    void SetUp() override { reopen(); }
    Reply apply(const Request& request) { return store_->apply_one(request, Deadline::never()); }
    LockStatus inspect() { return must(store_->inspect(lock("l"), Deadline::never())); }

    const TempFolder folder_;
    ManualClock clock_;
    std::unique_ptr<Store> store_;
};

TEST_F(SqliteClock, ASteppedWallClockNeitherEndsNorProlongsALease) {
    for (const auto step : {1h, -1h}) {
        const Acquire held = by_alice(lock("l"), 60s);
        ASSERT_THAT(apply(held), Granted());
        clock_.step_wall(step);
        reopen();
        clock_.advance(59s);
        EXPECT_EQ(inspect().state, LockState::held);
        EXPECT_THAT(apply(by_bob(lock("l"))), RefusedWith(Errc::lock_conflict));
        clock_.advance(2s);
        EXPECT_EQ(inspect().state, LockState::expired);
        EXPECT_THAT(apply(release(held)), Granted());
    }
}

TEST_F(SqliteClock, ASteppedWallClockKeepsTheOrderOfTheQueue) {
    const Acquire held = by_alice(lock("l"), 60s);
    const Acquire first = queued(by_bob(lock("l")), 10s);
    const Acquire second = queued(by_carol(lock("l")), 10s);
    ASSERT_THAT(apply(held), Granted());
    ASSERT_THAT(apply(first), RefusedWith(Errc::lock_conflict));
    clock_.step_wall(1h);
    ASSERT_THAT(apply(second), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(inspect().waiters, 2U);
    ASSERT_THAT(apply(release(held)), Granted());
    EXPECT_THAT(apply(second), RefusedWith(Errc::lock_conflict));
    clock_.step_wall(-2h);
    EXPECT_THAT(apply(first), Granted());
    EXPECT_EQ(inspect().waiters, 1U);
}

TEST_F(SqliteClock, TokensRiseAlthoughTheWallClockFalls) {
    const Acquire first = by_alice(lock("l"));
    const auto before = must(apply(first)).lock.token;
    ASSERT_THAT(apply(release(first)), Granted());
    clock_.step_wall(-24h);
    EXPECT_GT(must(apply(by_bob(lock("l")))).lock.token, before);
}

TEST_F(SqliteClock, EventsAreInTheOrderOfTheirTimesAlthoughTheClockWasPutBack) {
    const Instant begin = clock_.wall();
    ASSERT_THAT(apply(by_alice(lock("early"))), Granted());
    clock_.step_wall(2h);
    ASSERT_THAT(apply(by_alice(lock("late"))), Granted());
    clock_.step_wall(-1h);
    ASSERT_THAT(apply(by_alice(lock("between"))), Granted());
    const auto names = [&](const HistoryQuery& query) {
        std::vector<std::string> found;
        for (const AuditEvent& event : must(store_->history(query, Deadline::never())))
            found.push_back(event.name.text());
        return found;
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(names({}), (Names{"early", "between", "late"}));
    EXPECT_EQ(names({.limit = 1}), (Names{"late"}));
    EXPECT_EQ(names({.limit = 2}), (Names{"between", "late"}));
    EXPECT_EQ(names({.since = begin + 30min}), (Names{"between", "late"}));
    EXPECT_EQ(names({.since = begin + 90min}), (Names{"late"}));
    EXPECT_TRUE(names({.since = begin + 3h}).empty());
    EXPECT_TRUE(names({.limit = 0}).empty());

    const auto changed_since = [&](Instant since) {
        Names found;
        for (const LockStatus& status : must(store_->list({.changed_since = since}, Deadline::never())))
            found.push_back(status.name.text());
        return found;
    };
    EXPECT_EQ(changed_since(begin), (Names{"between", "early", "late"}));
    EXPECT_EQ(changed_since(begin + 90min), (Names{"late"}));
}

TEST_F(SqliteClock, ALeaseOutlivesARebootByOneTtlAtTheMost) {
    ASSERT_THAT(apply(by_alice(lock("l"), 60s)), Granted());
    store_.reset();
    clock_.reboot();
    clock_.step_wall(-48h);  // The host has lost its date.
    reopen();
    EXPECT_THAT(apply(by_bob(lock("l"))), RefusedWith(Errc::lock_conflict));
    EXPECT_LE(inspect().lease->expires_at - clock_.wall(), 60s);
}

TEST_F(SqliteClock, NobodyWaitsInAQueueAfterAReboot) {
    const Acquire held = by_alice(lock("l"), 60s);
    ASSERT_THAT(apply(held), Granted());
    ASSERT_THAT(apply(queued(by_bob(lock("l")))), RefusedWith(Errc::lock_conflict));
    store_.reset();
    clock_.reboot();
    reopen();
    EXPECT_EQ(inspect().waiters, 0U);
    ASSERT_THAT(apply(release(held)), Granted());
    EXPECT_THAT(apply(by_carol(lock("l"))), Granted());
}

TEST_F(SqliteClock, ADeadWaiterDropsOut) {
    const Acquire held = by_alice(lock("l"), 60s);
    ASSERT_THAT(apply(held), Granted());
    ASSERT_THAT(apply(queued(by_bob(lock("l")), 5s)), RefusedWith(Errc::lock_conflict));
    const Acquire alive = queued(by_carol(lock("l")), 20s);
    ASSERT_THAT(apply(alive), RefusedWith(Errc::lock_conflict));
    clock_.advance(6s);
    EXPECT_EQ(inspect().waiters, 1U);
    ASSERT_THAT(apply(release(held)), Granted());
    EXPECT_THAT(apply(alive), Granted());
}

/// What a child does on a file system of its own; 0 when everything was as it should be.
int fill_the_disk(const std::filesystem::path& folder) {
    const auto store = must(open_store("sqlite:" + (folder / "locks.db").string()));
    const Acquire held = by_alice(lock("l"));
    const auto before = must(store->apply_one(held, Deadline::never())).lock;
    {
        std::ofstream ballast(folder / "ballast", std::ios::binary);
        while (ballast << std::string(512, 'x') << std::flush) {
        }
    }
    // The log grows with every commit, so that one of the next must meet the end of the disk.
    for (int i = 0; i < 100; ++i) {
        const Acquire request = by_bob(lock("other" + std::to_string(i)));
        const auto reply = store->apply_one(request, Deadline::never());
        if (reply) continue;
        if (reply.error().code != Errc::store_unavailable) return 10;
        const auto unchanged = must(store->inspect(request.name, Deadline::never()));
        if (unchanged.seq != 0 || unchanged.state != LockState::free) return 11;
        if (must(store->inspect(lock("l"), Deadline::never())).chain != before.chain) return 12;
        std::filesystem::remove(folder / "ballast");
        if (!store->apply_one(request, Deadline::never())) return 13;
        return must(store->inspect(request.name, Deadline::never())).seq == 1 ? 0 : 14;
    }
    return 15;
}

TEST(SqliteDisk, AFullDiskChangesNothingAndALaterCallSucceeds) {
    const TempFolder folder;
    const int status = in_own_mounts([&] {
        if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) return no_mounts;
        return fill_the_disk(folder.path());
    });
    if (status == no_mounts) GTEST_SKIP() << not_here << "no small file system can be mounted";
    EXPECT_EQ(status, 0);
}

TEST(SqliteDisk, MemoryFileSystemsAreOfGradeB) {
    if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << not_here << "there is no /dev/shm";
    EXPECT_EQ(must(open_store("sqlite:/dev/shm/holdfast-not-there/locks.db"))->info().grade, Grade::b);
}

}  // namespace
}  // namespace holdfast::tests
