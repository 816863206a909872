// Goal: what a call costs does not depend on how many locks and events there are. Method: the server's own count of
// what it has read, of a session that has kept its plans since the tables were empty.
#include "stores/postgres_fixture.hpp"

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresPlans : public PostgresFixture {
protected:
    /// What a session has read is counted when it ends.
    void end(std::unique_ptr<Store> store) {
        const std::string sessions =
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%" + schema_ + "%' AND pid <> pg_backend_pid()";
        store.reset();
        while (by_hand_(sessions) != "0") std::this_thread::yield();
    }
    /// Rows of the table that anybody has read, by an index or from end to end.
    long long read_of(const std::string& table) {
        return std::stoll(
            by_hand_("SELECT seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes AS i "
                     "WHERE i.relid = t.relid) FROM pg_stat_user_tables AS t WHERE relid = '" +
                     schema_ + "." + table + "'::regclass"));
    }
    /// Through a store of its own, so that the one under test keeps the plans it has.
    void fill(int locks) {
        auto store = open();
        std::vector<Request> requests;
        for (int i = 0; i < locks; ++i) requests.emplace_back(by_alice(lock("b/" + std::to_string(i))));
        for (const Reply& reply : must(store->apply(requests, soon()))) must(reply);
        end_later_ = std::move(store);
    }

    /// A lock with `many` events.
    Acquire used_often(Store& store) {
        const Acquire mine = by_alice(lock("a/often"));
        std::vector<Request> requests{mine};
        while (requests.size() < many) requests.emplace_back(renewal(mine));
        for (const Reply& reply : must(store.apply(requests, soon()))) must(reply);
        return mine;
    }

    static constexpr int many = 3000;
    static constexpr int calls = 20;
    /// Filling itself looks at each row a few times. Once for each call would be more.
    static constexpr int few_times = many * calls / 2;
    std::unique_ptr<Store> end_later_{};
};

// The planner thought that putting all of an empty table into a hash was the fastest way to look for one row of it.
TEST_F(PostgresPlans, ACallThatWasPlannedForEmptyTablesReadsNoMoreWhenTheyAreFull) {
    auto store = open();
    const Acquire first = by_alice(lock("a"));
    must(store->apply_one(first, soon()));
    must(store->apply_one(release(first), soon()));
    fill(many);
    for (int i = 0; i < calls; ++i) {
        const Acquire mine = by_bob(lock("a/" + std::to_string(i)));
        must(store->apply_one(mine, soon()));
        must(store->apply_one(release(mine), soon()));
    }
    end_later_.reset();
    end(std::move(store));
    for (const char* table : {"audit", "locks", "queue"}) EXPECT_LT(read_of(table), few_times) << table;
}

TEST_F(PostgresPlans, AListByPrefixReadsWhatItShows) {
    must(open()->apply_one(by_alice(lock("a/1")), soon()));
    fill(many);
    auto store = open();
    for (int i = 0; i < calls; ++i) EXPECT_EQ(must(store->list({.prefix = "a/"}, soon())).size(), 1U);
    EXPECT_EQ(must(store->list({}, soon())).size(), static_cast<std::size_t>(many + 1)) << "once, all of them";
    end_later_.reset();
    end(std::move(store));
    EXPECT_LT(read_of("locks"), few_times);
}

TEST_F(PostgresPlans, APageOfAListReadsWhatItShows) {
    fill(many);
    auto store = open();
    ListQuery query{.limit = 10};
    for (int i = 0; i < calls; ++i) {
        const auto page = must(store->list(query, soon()));
        ASSERT_EQ(page.size(), 10U);
        query.after = page.back().name.text();
    }
    end_later_.reset();
    end(std::move(store));
    EXPECT_LT(read_of("locks"), few_times);
}

TEST_F(PostgresPlans, TheOldestEventsOfALockAreReadAlone) {
    auto store = open();
    const Acquire mine = used_often(*store);
    for (int i = 0; i < calls; ++i) {
        const auto events =
            must(store->history({.name = mine.name, .limit = 10, .which = HistoryQuery::Which::oldest}, soon()));
        ASSERT_EQ(events.size(), 10U);
    }
    end(std::move(store));
    EXPECT_LT(read_of("audit"), few_times);
}

TEST_F(PostgresPlans, PruningReadsWhatItRemoves) {
    auto store = open();
    const Acquire first = by_alice(lock("a"));
    must(store->apply_one(first, soon()));
    must(store->apply_one(renewal(first), soon()));
    must(store->apply_one(Prune{first.name, 1, "root"}, soon()));
    const Acquire mine = used_often(*store);
    fill(many);
    for (int i = 1; i <= calls; ++i)
        must(store->apply_one(Prune{mine.name, static_cast<std::uint64_t>(10 * i), "root"}, soon()));
    end_later_.reset();
    end(std::move(store));
    EXPECT_LT(read_of("audit"), few_times);
}

}  // namespace
}  // namespace holdfast::tests
