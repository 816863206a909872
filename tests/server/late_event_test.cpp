// Goal: an event whose transaction is committed late is in the stream, once, also for readers that have gone on
// meanwhile. `make serve-campaign` holds it up for longer.
// Method: somebody with a SQL shell keeps one change of a real PostgreSQL from being committed, while the daemon serves
// others.
#include "holdfast/open.hpp"
#include "server/stream.hpp"
#include "support/matchers.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace holdfast::server_test {
namespace {

using namespace std::chrono_literals;

/// The events of a stream, as `late 2`, up to `last`.
std::vector<std::string> lines_until(Stream& stream, const std::string& last) {
    std::vector<std::string> lines;
    while (const auto event = stream.next_event()) {
        const auto document = event->json();
        lines.push_back(fmt::format("{} {}", document.text("/name"), document.number("/seq")));
        if (lines.back() == last) break;
    }
    return lines;
}

class LateEvent : public testing::Test {
protected:
    /// A change by another process than the daemon. Ends when it was committed.
    [[nodiscard]] std::future<Reply> begin_held_up_change() {
        const Acquire late = tests::by_alice(tests::lock("late"), 1h);
        tests::must(store_->apply_one(late, Deadline::never()));
        // Until the end of this transaction nobody can write the second event of the lock.
        const std::string audit = place_.name() + ".audit";
        by_hand_(fmt::format("CREATE TABLE {0}_copy AS SELECT * FROM {0} WHERE name = 'late' AND seq = 1", audit));
        by_hand_(fmt::format("UPDATE {}_copy SET seq = 2", audit));
        by_hand_("BEGIN");
        by_hand_(fmt::format("INSERT INTO {0} SELECT * FROM {0}_copy", audit));
        auto change = std::async(std::launch::async,
                                 [this, late] { return store_->apply_one(tests::renewal(late), Deadline::never()); });
        EXPECT_TRUE(cli_test::eventually([&] {
            return by_hand_(
                       "SELECT count(*) FROM pg_locks WHERE NOT granted AND "
                       "transactionid = pg_current_xact_id()::xid") != "0";
        })) << "nobody waits";
        return change;
    }
    void take(const std::string& name) {
        EXPECT_EQ(daemon_.post("/v1/acquire", R"({"name":")" + name + R"("})").status, 200);
    }

    const tests::ServerPlace place_{"postgres", tests::shared_server_port("postgres")};
    Daemon daemon_{{}, place_.url()};
    const std::unique_ptr<Store> store_ = tests::must(open_store(place_.url()));
    tests::ByHand by_hand_{tests::shared_server_port("postgres")};
};

TEST_F(LateEvent, IsInTheStreamOnceThoughOthersCameBefore) {
    auto change = begin_held_up_change();
    Stream stream(daemon_.port(), "?since=", "");
    EXPECT_THAT(lines_until(stream, "late 1"), testing::Contains("late 1"));
    const Deadline end = Deadline::in(host_clock(), std::chrono::seconds(tests::scaled(3)));
    for (int others = 0; !end.passed(host_clock()); ++others) {
        take(fmt::format("other-{}", others));
        EXPECT_THAT(lines_until(stream, fmt::format("other-{} 1", others)), testing::SizeIs(1));
    }
    Stream resumed(daemon_.port(), "", stream.last_id());
    by_hand_("ROLLBACK");
    EXPECT_THAT(change.get(), tests::Granted());
    EXPECT_THAT(lines_until(stream, "late 2"), testing::ElementsAre("late 2"));
    EXPECT_THAT(lines_until(resumed, "late 2"), testing::Contains("late 2"));
    take("end");
    for (Stream* each : {&stream, &resumed})
        EXPECT_THAT(lines_until(*each, "end 1"), testing::Not(testing::Contains("late 2")));
}

}  // namespace
}  // namespace holdfast::server_test
