// Goal: threads that share a transaction share nothing else. Method: somebody with a SQL shell locks a row, or a table,
// and keeps it for as long as the test wants.
#include "stores/postgres_fixture.hpp"

#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresGathering : public PostgresFixture {
protected:
    /// Another transaction has locked a row. Threads that ask for that lock come first, and after them others, which
    /// must be done before the first ones give up.
    void work_beside(const std::string& in_hand, const std::string& name) {
        const auto store = open();
        must(store->apply_one(by_alice(lock("used")), soon()));
        by_hand_("BEGIN");
        by_hand_(in_hand);
        std::atomic<int> gave_up = 0;
        std::vector<std::jthread> stuck;
        for (int i = 0; i < 8; ++i)
            stuck.emplace_back([&] {
                std::ignore = store->apply_one(by_bob(lock(name)), Deadline::in(host_clock(), 10s));
                ++gave_up;
            });
        std::vector<std::jthread> others;
        for (int i = 0; i < 8; ++i)
            others.emplace_back([&, i] {
                const Acquire mine = by_alice(lock("other " + std::to_string(i)));
                EXPECT_THAT(store->apply_one(mine, Deadline::in(host_clock(), 1min)), Granted());
                for (int turn = 0; turn < 20; ++turn)
                    EXPECT_THAT(store->apply_one(renewal(mine), Deadline::in(host_clock(), 1min)), Granted());
            });
        others.clear();
        EXPECT_EQ(gave_up, 0);
        by_hand_("ROLLBACK");
    }
};

TEST_F(PostgresGathering, ARowThatSomebodyHasLockedHoldsUpItsOwnLockAlone) {
    work_beside("SELECT 1 FROM " + row_of_lock(lock("used")) + " FOR UPDATE", "used");
}

// A row that is not committed yet cannot be skipped: an insert of the same row has to wait for that transaction.
TEST_F(PostgresGathering, ARowThatSomebodyHasInsertedHoldsUpItsOwnLockAlone) {
    work_beside("INSERT INTO " + schema_ + ".locks (name) VALUES (" + ByHand::bytes("new") + ")", "new");
}

// A shared batch skips rows that other transactions have locked. Such a row may be about to change, also where it is
// only looked at.
TEST_F(PostgresGathering, ALockThatSomebodyHasInHandDoesNotCountAsFree) {
    const auto store = open();
    for (const char* name : {"a", "b", "stuck"}) {
        const Acquire before = by_alice(lock(name));
        must(store->apply_one(before, soon()));
        must(store->apply_one(release(before), soon()));
    }
    by_hand_("BEGIN");
    for (const char* name : {"b", "stuck"}) by_hand_("SELECT 1 FROM " + row_of_lock(lock(name)) + " FOR UPDATE");
    // A call that is alone waits. Only later calls are sent as a shared batch.
    std::jthread alone([&] { EXPECT_THAT(store->apply_one(by_bob(lock("stuck")), soon()), Granted()); });
    const std::string waiting = fmt::format(
        "SELECT count(*) FROM pg_locks AS w JOIN pg_locks AS u USING (pid) WHERE NOT w.granted AND "
        "u.relation = '{}.locks'::regclass",
        schema_);
    const Deadline patience = soon();
    while (by_hand_(waiting) == "0" && !patience.passed(host_clock())) std::this_thread::yield();
    Acquire excluded = by_alice(lock("a"));
    excluded.unless_held = {lock("b")};
    EXPECT_THAT(store->apply_one(excluded, Deadline::in(host_clock(), 300ms)), RefusedWith(Errc::store_unavailable));
    by_hand_("ROLLBACK");
    EXPECT_EQ(must(store->inspect(lock("a"), soon())).state, LockState::free);
    EXPECT_THAT(store->apply_one(excluded, soon()), Granted());
}

TEST_F(PostgresGathering, ThreadsThatAskAtOnceShareTransactions) {
    constexpr int many = 40;
    const auto store = open();
    must(store->apply({}, soon()));
    // Every transaction begins with a look at this table.
    by_hand_("BEGIN");
    by_hand_("LOCK TABLE " + schema_ + ".meta");
    std::vector<std::jthread> threads;
    for (int i = 0; i < many; ++i)
        threads.emplace_back(
            [&, i] { EXPECT_THAT(store->apply_one(by_alice(lock(std::to_string(i))), soon()), Granted()); });
    ByHand other{port_};
    const std::string waiting =
        fmt::format("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{}.meta'::regclass", schema_);
    // Two that went by themselves, and the first that has gathered others.
    while (std::stoi(other(waiting)) < 3) std::this_thread::yield();
    by_hand_("COMMIT");
    threads.clear();
    EXPECT_LT(std::stoi(by_hand_("SELECT count(DISTINCT xmin::text) FROM " + schema_ + ".audit")), many);
    EXPECT_EQ(by_hand_("SELECT count(*) FROM " + schema_ + ".audit"), std::to_string(many));
}

}  // namespace
}  // namespace holdfast::tests
