// Goal: a change whose transaction is committed late is in the events, also for readers that have read on meanwhile.
// Method: somebody with a SQL shell keeps one change of a real server from being committed.
#include "client/event_reader.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"

#include <gmock/gmock.h>

#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using client::EventReader;

class LateCommit : public testing::TestWithParam<std::string> {
protected:
    LateCommit() : place_(GetParam(), shared_server_port(GetParam())) {
        must(store_->apply({}, Deadline::never()));
        if (is_postgres())
            postgres_ = std::make_unique<ByHand>(shared_server_port(GetParam()));
        else
            mysql_ = std::make_unique<MysqlByHand>(shared_server_port(GetParam()), place_.name());
    }
    ~LateCommit() override {
        try {
            by_hand(is_postgres() ? "DROP SCHEMA " + place_.name() + " CASCADE" : "DROP DATABASE " + place_.name());
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    }

    [[nodiscard]] static bool is_postgres() { return GetParam() == "postgres"; }
    std::string by_hand(const std::string& sql) {
        if (is_postgres()) return (*postgres_)(sql);
        const auto rows = mysql_->run(sql);
        return rows.empty() ? "" : rows[0].at(0);
    }

    /// Until the end of this transaction nobody can write the second event of a lock.
    void block_second_event() {
        const std::string audit = is_postgres() ? place_.name() + ".audit" : "holdfast_audit";
        by_hand("CREATE TABLE " + audit + "_copy AS SELECT * FROM " + audit + " WHERE seq = 1");
        by_hand("UPDATE " + audit + "_copy SET seq = 2");
        by_hand(is_postgres() ? "BEGIN" : "START TRANSACTION");
        by_hand("INSERT INTO " + audit + " SELECT * FROM " + audit + "_copy");
    }
    void await_somebody_blocked() {
        const std::string question =
            is_postgres()
                ? "SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
                : "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO "
                  "holdfast_audit%' AND db = '" +
                      place_.name() + "'";
        for (const Deadline end = Deadline::in(host_clock(), 20s); by_hand(question) == "0";) {
            if (end.passed(host_clock())) throw std::runtime_error("nobody waits");
            std::this_thread::sleep_for(5ms);
        }
    }
    std::vector<std::string> read(EventReader& reader) {
        std::vector<std::string> lines;
        do {
            for (const AuditEvent& event : must(reader.next(*store_, Deadline::never())))
                lines.push_back(fmt::format("{} {}", event.name.text(), event.seq));
        } while (!reader.is_at_end());
        return lines;
    }

    const ServerPlace place_;
    ManualClock clock_{};
    const std::unique_ptr<Store> store_ = must(open_store(place_.url(), clock_));
    std::unique_ptr<ByHand> postgres_{};
    std::unique_ptr<MysqlByHand> mysql_{};
};

TEST_P(LateCommit, IsInTheEventsThoughTheReaderWasFurther) {
    const Acquire late = by_alice(lock("late"), 1h);
    must(store_->apply_one(late, Deadline::never()));
    EventReader reader;
    EXPECT_THAT(read(reader), testing::ElementsAre("late 1"));
    block_second_event();
    const auto writer = must(open_store(place_.url(), clock_));
    auto changed = std::async(std::launch::async, [&] { return writer->apply_one(renewal(late), Deadline::never()); });
    await_somebody_blocked();
    clock_.advance(20s);
    must(store_->apply_one(by_bob(lock("other"), 1h), Deadline::never()));
    EXPECT_THAT(read(reader), testing::ElementsAre("other 1"));
    clock_.advance(20s);
    EXPECT_THAT(read(reader), testing::IsEmpty());
    EventReader resumed(reader.cursor());
    by_hand("ROLLBACK");
    ASSERT_THAT(changed.get(), Granted());
    clock_.advance(40s);
    EXPECT_THAT(read(reader), testing::ElementsAre("late 2"));
    EXPECT_THAT(read(resumed), testing::Contains("late 2"));
}

INSTANTIATE_TEST_SUITE_P(Servers, LateCommit, testing::Values("postgres", "mysql"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
