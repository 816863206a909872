// Goal: what is heard is heard by the watches that it concerns, also after the connection broke, and many watches are
// looked at together. Method: the parts that listen and look, without the thread that calls them, on a real server.
#include "stores/postgres/codec.hpp"
#include "stores/postgres/wait.hpp"
#include "stores/postgres_fixture.hpp"

#include <poll.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using namespace stores::postgres;
using stores::Heard;
using stores::HubWatch;
using stores::Sighting;
using testing::Each;
using testing::ElementsAre;

class PostgresListener : public PostgresFixture {
protected:
    PostgresListener() { must(open()->apply_one(by_alice(lock("l"), 1h), soon())); }

    /// For `count` tickets in the queue of the lock.
    [[nodiscard]] std::vector<HubWatch> queue_up(int count) {
        std::vector<Request> requests;
        for (int i = 0; i < count; ++i) requests.emplace_back(queued(by("w", lock("l"), 1h), 1h));
        const auto replies = must(open()->apply(requests, soon()));
        EXPECT_THAT(replies, Each(RefusedWith(Errc::lock_conflict)));
        std::vector<HubWatch> watches;
        for (const Request& one : requests)
            watches.push_back({watches.size() + 1, {lock("l"), 1, std::get<Acquire>(one).as.lock_id}});
        return watches;
    }
    [[nodiscard]] std::vector<HubWatch> listened_for(Listener& listener, int count) {
        auto watches = queue_up(count);
        for (const HubWatch& one : watches) listener.add(one);
        EXPECT_TRUE(listener.listen_and_ask(nothing_, true));
        return watches;
    }
    void notify(const HubWatch& watch) { by_hand_("NOTIFY " + channel_of(*watch.watch.ticket)); }

    /// What is heard next.
    [[nodiscard]] static Heard wait_for_news(Listener& listener) {
        pollfd ready{listener.socket(), POLLIN, 0};
        poll(&ready, 1, 20'000);
        return listener.take_heard();
    }
    void end_sessions() {
        by_hand_("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '" + schema_ + "'");
    }

    const Settings settings_ = must(settings_of(must(base::Url::parse(url("application_name=" + schema_)))));
    const Statements statements_{settings_};
    Statement nothing_{"SELECT 1"};
};

TEST_F(PostgresListener, TellsOnlyTheWatchThatIsMeant) {
    Listener listener(settings_);
    const auto watches = queue_up(3);
    for (const HubWatch& one : watches) listener.add(one);
    EXPECT_FALSE(listener.hears(watches[1].watch));
    ASSERT_TRUE(listener.listen_and_ask(nothing_, true));
    EXPECT_TRUE(listener.hears(watches[1].watch));
    EXPECT_FALSE(listener.listen_and_ask(nothing_, true)) << "the server has been told of all";
    notify(watches[1]);
    const Heard heard = wait_for_news(listener);
    EXPECT_FALSE(heard.all);
    EXPECT_THAT(heard.ids, ElementsAre(watches[1].id));
}

TEST_F(PostgresListener, HearsNothingForAWatchThatIsGone) {
    Listener listener(settings_);
    const auto watches = listened_for(listener, 2);
    listener.remove({watches.data(), 1});
    while (by_hand_("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + schema_ +
                    "' AND query LIKE 'UNLISTEN holdfast%'") != "1")
        std::this_thread::yield();
    notify(watches[0]);
    notify(watches[1]);
    Heard heard;
    while (heard.ids.empty()) heard = wait_for_news(listener);
    EXPECT_THAT(heard.ids, ElementsAre(watches[1].id));
}

TEST_F(PostgresListener, LooksAtEverybodyOnceAfterItHasConnectedAgain) {
    Listener listener(settings_);
    const auto watches = listened_for(listener, 3);
    end_sessions();
    while (!wait_for_news(listener).all) std::this_thread::yield();
    EXPECT_FALSE(listener.take_heard().all);
    EXPECT_FALSE(listener.hears(watches[0].watch));
    // It does not try at once.
    while (!listener.listen_and_ask(nothing_, false)) std::this_thread::yield();
    EXPECT_TRUE(listener.take_heard().all) << "a notification may have come in between";
    EXPECT_FALSE(listener.take_heard().all);
    notify(watches[2]);
    EXPECT_THAT(wait_for_news(listener).ids, ElementsAre(watches[2].id));
}

/// What is asked of the store.
class PostgresLook : public PostgresListener {
protected:
    Result<std::optional<std::vector<Rows>>> ask(const std::vector<Statement>& questions) {
        ++asked_;
        if (fails_) return fail(Errc::store_unavailable, "out of reach");
        return std::optional(std::move(connection_->run(questions, base::CallBudget(20s)).answers));
    }

    int asked_ = 0;
    bool fails_ = false;
    const std::unique_ptr<Connection> connection_ = must(connect(settings_, base::CallBudget(20s)));
    Optimistic optimistic_{};
    WatchSource source_{settings_, statements_, host_clock(), optimistic_,
                        [this](const std::vector<Statement>& questions) { return ask(questions); }};
};

TEST_F(PostgresLook, AtManyWatchesTakesOneQuery) {
    const auto watches = queue_up(500);
    source_.add(watches);
    for (int round = 0; round < 3; ++round)
        for (const Sighting& one : source_.look(watches)) EXPECT_FALSE(one.fired);
    EXPECT_EQ(asked_, 2) << "the first was asked by the one that listens";
}

TEST_F(PostgresLook, AtANotifiedWatchReadsTheLockAndNothingElse) {
    const auto watches = queue_up(3);
    source_.add(watches);
    for (const Sighting& one : source_.look(watches)) EXPECT_FALSE(one.fired);
    notify(watches[0]);
    Heard heard;
    while (heard.ids.empty()) heard = source_.listen(1000ms);
    EXPECT_THAT(heard.ids, ElementsAre(watches[0].id));
    const auto seen = source_.look(watches);
    EXPECT_EQ(asked_, 1);
    EXPECT_TRUE(seen[0].fired);
    EXPECT_FALSE(seen[1].fired);
    EXPECT_FALSE(seen[2].fired);
}

TEST_F(PostgresLook, ThatFailsFiresEveryWatchWithTheError) {
    const auto watches = queue_up(3);
    source_.add(watches);
    for (const Sighting& one : source_.look(watches)) EXPECT_FALSE(one.fired);
    fails_ = true;
    for (const Sighting& one : source_.look(watches)) {
        ASSERT_TRUE(one.fired);
        EXPECT_THAT(*one.fired, RefusedWith(Errc::store_unavailable));
    }
}

}  // namespace
}  // namespace holdfast::tests
