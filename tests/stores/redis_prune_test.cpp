// Goal: pruning takes the events that it names and no others, whatever else happens to the keys. Method: a server of
// the test's own, whose keys and memory and rights are changed by hand.
#include "stores/redis_fixture.hpp"

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const std::string audit_of_x = "{holdfast}:audit:x";

/// A lock x with so many events.
Acquire with_events(Store& store, int count) {
    const Acquire alice = by_alice(lock("x"), 1h);
    std::vector<Request> requests{alice};
    for (int i = 1; i < count; ++i) requests.emplace_back(renewal(alice));
    EXPECT_THAT(must(store.apply(requests, soon())), testing::Each(Granted()));
    return alice;
}

std::vector<std::uint64_t> seqs(Store& store, HistoryQuery query = {}) {
    query.name = lock("x");
    std::vector<std::uint64_t> found;
    for (const AuditEvent& event : must(store.history(query, soon()))) found.push_back(event.seq);
    return found;
}

// What fills the memory is the audit log: it must be possible to shorten it then.
TEST(RedisPrune, WorksOnAServerThatIsOutOfMemory) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = with_events(*store, 20);
    redis.by_hand().ask({"CONFIG", "SET", "maxmemory", "100000"});
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply_one(Prune{lock("x"), 18, "root"}, soon()), Granted());
    EXPECT_THAT(seqs(*store), ElementsAre(19, 20, 21));
    expect_sound(*store, lock("x"));
}

// Redis takes nothing back, so a write that fails must not come behind the cut.
TEST(RedisPrune, LosesNoEventWhenAnotherKeyIsOfTheWrongKind) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    with_events(*store, 5);
    const Request prune = Prune{lock("x"), 3, "root"};
    const Acquire held = by_alice(lock("y"), 1h);
    must(store->apply_one(held, soon()));
    RedisByHand server = redis.by_hand();
    for (const char* key : {"names", "held", "changed", "alive:y", "tickets:y"}) {
        const std::string full = "{holdfast}:" + std::string(key);
        const bool is_there = server.ask({"EXISTS", full}) == "1";
        if (is_there) server.ask({"RENAME", full, "aside"});
        server.ask({"SET", full, "not ours"});
        EXPECT_FALSE(store->apply(std::vector<Request>{prune, queued(by_bob(lock("y")))}, soon())) << key;
        EXPECT_EQ(server.ask({"LLEN", audit_of_x}), "5") << key;
        server.ask({"DEL", full});
        if (is_there) server.ask({"RENAME", "aside", full});
    }
    EXPECT_THAT(store->apply_one(prune, soon()), Granted());
    EXPECT_THAT(seqs(*store), ElementsAre(4, 5, 6));
}

TEST(RedisPrune, WithoutTheRightChangesNothingAndSaysSo) {
    const OwnRedis redis;
    must(must(redis.open())->apply({}, soon()));
    RedisByHand server = redis.by_hand();
    const std::string password(server_password);
    server.ask({"ACL", "SETUSER", "locker", "on", ">" + password, "~*", "&*", "+@all", "-ltrim"});
    const auto store =
        must(open_store("redis://locker:" + password + "@127.0.0.1:" + std::to_string(server.port()) + "/0"));
    const Acquire alice = with_events(*store, 5);
    const std::vector<Request> requests{Prune{lock("x"), 3, "root"}, release(alice)};
    EXPECT_THAT(store->apply(requests, soon()), RefusedWith(Errc::denied));
    EXPECT_THAT(seqs(*store), ElementsAre(1, 2, 3, 4, 5));
    EXPECT_TRUE(must(store->inspect(lock("x"), soon())).lease);
}

TEST(RedisPrune, TakesNoNewerEventsFromALogThatSomebodyHasShortened) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    with_events(*store, 10);
    redis.by_hand().ask({"LTRIM", audit_of_x, "4", "-1"});
    EXPECT_THAT(store->apply_one(Prune{lock("x"), 6, "root"}, soon()), Granted());
    EXPECT_THAT(seqs(*store), ElementsAre(7, 8, 9, 10, 11));
    expect_sound(*store, lock("x"));
}

// Two writers, so that what one of them remembers of the lock is wrong again and again. A reader needs several pages,
// whose places move while it reads.
TEST(RedisPrune, AReaderSeesNoGapAndNoEventTwiceMeanwhile) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = with_events(*store, 6000);
    std::jthread writer([&](const std::stop_token& stop) {
        const auto other = must(redis.open());
        for (std::uint64_t through = 50; through < 5000 && !stop.stop_requested(); through += 50) {
            EXPECT_THAT(other->apply_one(Prune{lock("x"), through, "root"}, soon()), Granted());
            EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
        }
    });
    const auto is_whole = [](const std::vector<std::uint64_t>& found) {
        return std::ranges::adjacent_find(found, [](auto a, auto b) { return b != a + 1; }) == found.end();
    };
    using Which = HistoryQuery::Which;
    while (must(store->inspect(lock("x"), soon())).pruned_seq < 4900) {
        EXPECT_TRUE(is_whole(seqs(*store)));
        EXPECT_TRUE(is_whole(seqs(*store, {.limit = 3000})));
        const auto oldest = seqs(*store, {.limit = 1500, .which = Which::oldest});
        EXPECT_TRUE(is_whole(oldest));
        EXPECT_GE(oldest.size(), std::min<std::size_t>(seqs(*store).size(), 1500));
        EXPECT_TRUE(is_whole(seqs(*store, {.after_seq = 2000, .limit = 700, .which = Which::oldest})));
    }
    writer.join();
    expect_sound(*store, lock("x"));
}

// Where an event was taken out can be seen by reading.
TEST(RedisPrune, ALongLogWithAGapIsReadWhole) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    with_events(*store, 2000);
    RedisByHand server = redis.by_hand();
    server.ask({"LSET", audit_of_x, "700", "gone"});
    server.ask({"LREM", audit_of_x, "1", "gone"});
    using Which = HistoryQuery::Which;
    EXPECT_EQ(seqs(*store).size(), 1999U);
    EXPECT_EQ(seqs(*store, {.limit = 1600}).front(), 400U);
    EXPECT_EQ(seqs(*store, {.limit = 1600, .which = Which::oldest}).back(), 1601U);
    EXPECT_THAT(seqs(*store, {.after_seq = 701, .limit = 1, .which = Which::oldest}), ElementsAre(702));
    EXPECT_TRUE(seqs(*store, {.after_seq = 5000, .limit = 1, .which = Which::oldest}).empty());
    EXPECT_FALSE(
        verify_chain(must(store->history({.name = lock("x")}, soon())), must(store->inspect(lock("x"), soon()))));
}

}  // namespace
}  // namespace holdfast::tests
