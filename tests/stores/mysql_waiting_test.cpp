// Goal: however many wait, one query polls for all of them, and only the waiter whose turn has come is woken. Method:
// the part that polls, without the thread that calls it, and whole stores; on a real server.
#include "stores/mysql/wait.hpp"
#include "stores/mysql_fixture.hpp"
#include "support/run_settings.hpp"

#include <atomic>
#include <filesystem>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using namespace stores::mysql;
using stores::HubWatch;
using stores::Sighting;
using testing::Each;

class MysqlWaiting : public testing::Test {
protected:
    MysqlWaiting() { must(store_->apply_one(held_, MysqlPlace::soon())); }

    /// Of `count` waiters in the queue of a lock that is held.
    [[nodiscard]] std::vector<HubWatch> queue_up(int count, const std::string& name = "l") {
        std::vector<Request> requests;
        for (int i = 0; i < count; ++i) requests.emplace_back(queued(by("w", lock(name), 1h), 1h));
        const auto replies = must(store_->apply(requests, MysqlPlace::soon()));
        EXPECT_THAT(replies, Each(RefusedWith(Errc::lock_conflict)));
        std::vector<HubWatch> watches;
        for (const Request& one : requests)
            watches.push_back({watches.size() + 1, {lock(name), 1, std::get<Acquire>(one).as.lock_id}});
        return watches;
    }

    MysqlPlace place_{shared_server_port("mysql")};
    const std::unique_ptr<Store> store_ = place_.open();
    const Acquire held_ = by_alice(lock("l"), 1h);
};

TEST_F(MysqlWaiting, ManySubscriptionsNeedOneThreadAndOneMoreConnection) {
    const auto waiter = place_.open();
    const auto watches = queue_up(scaled(1000));
    const auto threads = [] {
        const std::filesystem::directory_iterator tasks("/proc/self/task");
        return std::distance(begin(tasks), end(tasks));
    };
    const auto connections = [&] {
        return std::stoi(
            place_.shell.value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE()"));
    };
    const auto threads_before = threads();
    const auto connections_before = connections();
    std::atomic<int> fired = 0;
    std::vector<std::unique_ptr<Subscription>> subscriptions;
    for (const HubWatch& one : watches)
        subscriptions.push_back(must(waiter->subscribe(one.watch, [&](const auto& result) {
            EXPECT_TRUE(result);
            ++fired;
            fired.notify_all();
        })));
    EXPECT_EQ(threads(), threads_before + 1);
    must(store_->apply_one(release(held_), MysqlPlace::soon()));
    fired.wait(0);
    EXPECT_LE(connections(), connections_before + 1);
    subscriptions.clear();
    EXPECT_EQ(fired, 1) << "only the first has the lock";
}

TEST_F(MysqlWaiting, ASubscriptionWhosePollFailsIsToldSo) {
    const auto watches = queue_up(1);
    place_.shell.run("DROP TABLE holdfast_queue");
    EXPECT_FALSE(store_->wait_for_change(watches[0].watch, MysqlPlace::soon()));
    EXPECT_FALSE(store_->wait_for_change({.name = lock("l"), .seen_seq = 1}, MysqlPlace::soon()));
}

/// What is asked of the store.
class MysqlPoll : public MysqlWaiting {
protected:
    Result<std::optional<Answers>> ask(const Sql& sql) {
        ++asked_;
        if (fails_) return fail(Errc::store_unavailable, "out of reach");
        auto answers = connection_->run(sql, MysqlPlace::soon());
        if (!answers) return fail(Errc::store_unavailable, answers.error().text);
        return std::optional(std::move(*answers));
    }
    static Address address_of(const std::string& text) {
        auto url = must(base::Url::parse(text));
        return must(Address::of(url));
    }

    int asked_ = 0;
    bool fails_ = false;
    const Address address_ = address_of(place_.database.url());
    std::expected<Connection, Failure> connection_ =
        Connection::open(address_, address_.endpoints.front(), host_clock(), MysqlPlace::soon());
    WatchSource source_{host_clock(), [this](const Sql& sql) { return ask(sql); }};
};

TEST_F(MysqlPoll, ForManyWatchesOfOneLockIsOneQuery) {
    const auto watches = queue_up(500);
    source_.add(watches);
    for (const Sighting& one : source_.look(watches)) EXPECT_FALSE(one.fired);
    EXPECT_EQ(asked_, 1);
}

TEST_F(MysqlPoll, ForManyLocksIsOneQueryAndEachIsSeenAsItIs) {
    std::vector<Request> requests;
    std::vector<HubWatch> watches;
    for (std::uint64_t i = 1; i <= 100; ++i) {
        const LockName name = lock("many/" + std::to_string(i));
        requests.emplace_back(by_alice(name, 1h));
        // Every other one has changed since it was looked at.
        watches.push_back({i, {.name = name, .seen_seq = i % 2}});
    }
    for (const Reply& reply : must(store_->apply(requests, MysqlPlace::soon()))) must(reply);
    source_.add(watches);
    const auto seen = source_.look(watches);
    EXPECT_EQ(asked_, 1);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].fired.has_value(), watches[i].id % 2 == 0) << i;
}

TEST_F(MysqlPoll, FiresOnlyTheFirstInTheQueueWhenTheLockIsFree) {
    auto watches = queue_up(6);
    place_.shell.run("UPDATE holdfast_locks SET lock_id = NULL, expires_at = NULL");
    source_.add(watches);
    const auto seen = source_.look(watches);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].fired.has_value(), i == 0) << i;
    place_.shell.run("UPDATE holdfast_queue SET expires_at = 1 WHERE lock_id = '" + watches[0].watch.ticket->text() +
                     "'");
    EXPECT_TRUE(source_.look(watches)[1].fired) << "the ticket before it has run out";
}

TEST_F(MysqlPoll, FiresAWaiterThatHasNoTicketAnyMore) {
    auto watches = queue_up(2);
    place_.shell.run("DELETE FROM holdfast_queue WHERE lock_id = '" + watches[1].watch.ticket->text() + "'");
    source_.add(watches);
    const auto seen = source_.look(watches);
    EXPECT_FALSE(seen[0].fired);
    EXPECT_TRUE(seen[1].fired);
}

TEST_F(MysqlPoll, ThatFailsFiresEveryWatchWithTheError) {
    const auto watches = queue_up(3);
    source_.add(watches);
    fails_ = true;
    for (const Sighting& one : source_.look(watches)) {
        ASSERT_TRUE(one.fired);
        EXPECT_THAT(*one.fired, RefusedWith(Errc::store_unavailable));
    }
}

TEST(MysqlPollRhythm, IsShortWhenSomethingHappensAndLongFarBack) {
    const auto settled = [](const Position& position, std::size_t watches) {
        PollRhythm rhythm;
        auto pause = rhythm.next(position, watches);
        EXPECT_LE(pause, 25ms);
        for (int i = 0; i < 30; ++i) pause = rhythm.next(position, watches);
        return pause;
    };
    EXPECT_LE(settled({.seq = 1}, 10), 200ms);
    EXPECT_GT(settled({.seq = 1, .ahead = 4}, 10), 200ms);
    PollRhythm of_many;
    EXPECT_GE(of_many.next({.seq = 1, .ahead = 4}, 10'000), 3000ms);
    EXPECT_LE(of_many.next({.seq = 2}, 10'000), 5ms) << "it has come near the head";
}

}  // namespace
}  // namespace holdfast::tests
