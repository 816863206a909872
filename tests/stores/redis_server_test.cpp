// Goal: what can happen to a Redis server and to what is in it never gives a lock away. Method: real servers of the
// test's own, changed by hand while a store uses them.
#include "stores/redis_fixture.hpp"
#include "support/servers/clock.hpp"
#include "support/servers/proxy.hpp"

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

// A script is called by its digest, and Redis forgets it in a restart and in a failover: NOSCRIPT.
TEST(RedisScript, IsSentAgainWhenTheServerHasForgottenIt) {
    OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    redis.by_hand().ask({"SCRIPT", "FLUSH"});
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    redis.server().stop();
    redis.server().start();
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).seq, 3U);
}

// Two faults at once: the server has forgotten the script, and the answer to the one that is sent again is lost.
TEST(RedisScript, ThatIsSentAgainAndNotAnsweredLeavesTheOutcomeUnknown) {
    OwnRedis redis;
    Proxy proxy(redis.server().port());
    std::string url = redis.url();
    const std::string port = std::to_string(redis.server().port());
    url.replace(url.find(port), port.size(), std::to_string(proxy.port()));
    const auto store = must(open_store(url));
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    redis.by_hand().ask({"SCRIPT", "FLUSH"});
    proxy.arrange(2, Fate::lose_reply);
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).seq, 2U) << "it was done, once";
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    expect_sound(*store, lock("x"));
}

// Redis 7.0 reads the clock again at each call, and two calls in one script were seen 55 ms apart.
TEST(RedisScript, ReadsTheClockOnce) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    const auto calls = [&](const std::string& command) {
        const std::string text = server.ask({"INFO", "commandstats"});
        const auto at = text.find("cmdstat_" + command + ":calls=");
        return at == std::string::npos ? 0 : std::stoi(text.substr(text.find('=', at) + 1));
    };
    server.ask({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < 10; ++i) must(store->apply_one(renewal(alice), soon()));
    EXPECT_FALSE(store->apply_one(queued(by_bob(lock("x"))), soon()));
    must(store->inspect(lock("x"), soon()));
    EXPECT_EQ(calls("time"), calls("evalsha"));
    EXPECT_GE(calls("evalsha"), 10);
}

TEST(RedisScript, NoNameBecomesCode) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const std::vector<std::string> names{"redis.call('FLUSHALL')",
                                         "') redis.call('FLUSHALL') --",
                                         "]] redis.call('FLUSHALL') --[[",
                                         "*1 $8 FLUSHALL",
                                         "{other}:store",
                                         "store",
                                         "x} y",
                                         "%s %d ${x}",
                                         "*"};
    for (const std::string& name : names) must(store->apply_one(queued(by_alice(lock(name), 1h)), soon()));
    for (const std::string& name : names)
        EXPECT_THAT(store->apply_one(queued(by_bob(lock(name))), soon()), RefusedWith(Errc::lock_conflict)) << name;
    EXPECT_EQ(must(store->list({}, soon())).size(), names.size());
    for (const std::string& name : names) expect_sound(*store, lock(name));
}

// ZMSCORE came with 6.2, and a server may be older or not permit it.
TEST(RedisScript, GoesWithoutCommandsThatOlderServersLack) {
    const OwnRedis redis({"--rename-command", "ZMSCORE", "", "--rename-command", "PUBSUB", ""});
    const auto store = must(redis.open());
    const std::vector<Request> both{by_alice(lock("x"), 1h), by_alice(lock("y"), 1h)};
    EXPECT_THAT(must(store->apply(both, soon())), testing::Each(Granted()));
    redis.by_hand().ask({"DEL", "{holdfast}:lock:x", "{holdfast}:audit:x"});
    const auto fresh = must(redis.open());
    EXPECT_THAT(fresh->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(fresh->apply_one(by_bob(lock("z")), soon()), Granted());
}

// More locks than Lua can pass arguments to one command.
TEST(RedisScript, TakesBatchesOfAnySize) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    std::vector<Request> acquires;
    std::vector<Request> releases;
    for (int i = 0; i < 4500; ++i) {
        const Acquire one = by_alice(lock("lock " + std::to_string(i)), 1h);
        acquires.emplace_back(one);
        releases.emplace_back(release(one));
    }
    EXPECT_THAT(must(store->apply(acquires, soon())), testing::Each(Granted()));
    EXPECT_EQ(must(store->list({}, soon())).size(), acquires.size());
    EXPECT_THAT(must(store->apply(releases, soon())), testing::Each(Granted()));
    EXPECT_TRUE(must(store->list({}, soon())).empty());
    for (const char* name : {"lock 0", "lock 1234", "lock 4499"}) expect_sound(*store, lock(name));
}

TEST(RedisStoreId, AFlushedStoreIsAnErrorAndNotAnEmptyStore) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    const auto id = store->info().store_id;
    RedisByHand server = redis.by_hand();
    server.ask({"FLUSHALL"});

    EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply_one(by_bob(lock("never seen")), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->list({.with_free = true}, soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->history({}, soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->history({.name = lock("x")}, soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(server.ask({"DBSIZE"}), "0");

    // A new client gets a new store, and the others see that it is not theirs.
    const auto next = must(redis.open());
    must(next->apply_one(by_bob(lock("y")), soon()));
    EXPECT_NE(next->info().store_id, id);
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->list({.with_free = true}, soon()), RefusedWith(Errc::store_unavailable));
}

TEST(RedisStoreId, ANewerFormatIsRefused) {
    const OwnRedis redis;
    must(must(redis.open())->apply({}, soon()));
    redis.by_hand().ask({"HSET", "{holdfast}:store", "format", "3"});
    EXPECT_THAT(redis.open(), RefusedWith(Errc::format_unsupported));
}

TEST(RedisDamage, ALockWhoseRecordWasDeletedIsNotFree) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const auto fresh = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    for (const char* key : {"{holdfast}:lock:x", "{holdfast}:audit:x"}) {
        server.ask({"DEL", key});
        for (Store* one : {store.get(), fresh.get()}) {
            EXPECT_THAT(one->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::record_corrupt)) << key;
            EXPECT_THAT(one->apply_one(renewal(alice), soon()), RefusedWith(Errc::record_corrupt)) << key;
            EXPECT_THAT(one->inspect(lock("x"), soon()), RefusedWith(Errc::record_corrupt)) << key;
        }
    }
    EXPECT_THAT(store->apply_one(by_bob(lock("y")), soon()), Granted());
}

TEST(RedisDamage, AKeyOfTheWrongKindBlocksItsLockAndLeavesNothingHalfDone) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    RedisByHand server = redis.by_hand();
    must(store->apply({}, soon()));
    server.ask({"SET", "{holdfast}:lock:a", "not ours"});
    server.ask({"SET", "{holdfast}:queue:b", "not ours"});
    server.ask({"HSET", "{holdfast}:lock:e", "not", "ours"});
    EXPECT_THAT(store->apply_one(by_bob(lock("a")), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store->inspect(lock("b"), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store->apply_one(by_bob(lock("e")), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_EQ(server.ask({"HGET", "{holdfast}:lock:e", "not"}), "ours");

    // The audit list of the second lock of a batch: the first must not be written either.
    const Acquire alice = by_alice(lock("d"), 1h);
    must(store->apply_one(alice, soon()));
    server.ask({"DEL", "{holdfast}:audit:d"});
    server.ask({"SET", "{holdfast}:audit:d", "not ours"});
    EXPECT_FALSE(store->apply(std::vector<Request>{by_bob(lock("c")), renewal(alice)}, soon()));
    EXPECT_EQ(must(store->inspect(lock("c"), soon())).seq, 0U);
    EXPECT_THAT(store->apply_one(by_bob(lock("c")), soon()), Granted());
}

// What was guessed from memory must not count when a backup was put back under it.
TEST(RedisDamage, AnOlderRecordPutBackIsNotOverwrittenByWhatAProcessRemembers) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    const std::string value = server.ask({"GET", "{holdfast}:lock:x"});
    must(store->apply_one(release(alice), soon()));
    server.ask({"SET", "{holdfast}:lock:x", value});
    server.ask({"RPOP", "{holdfast}:audit:x"});

    EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    expect_sound(*store, lock("x"));
}

// The server's clock judges, and it can be wrong by an hour: what was written before counts from when it was put back.
TEST(RedisClock, AClockPutBackBlocksALockForNoLongerThanItsTtl) {
    ServerClock clock;
    const OwnRedis redis({}, clock.environment());
    const auto store = must(redis.open());
    const auto other = must(redis.open());
    must(store->apply_one(by_alice(lock("x"), 2s), soon()));
    EXPECT_FALSE(other->apply_one(queued(by_carol(lock("x")), 1s), soon())) << "who then dies";
    clock.step(-1h);
    const Acquire bob = queued(by_bob(lock("x")), 10s);
    const Reply refused = other->apply_one(bob, soon());
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_LE(refused.error().retry_after.value_or(1h), 2s);
    const Deadline end = within(15s);
    Reply reply = refused;
    while (!reply && !end.passed(host_clock())) {
        std::this_thread::sleep_for(100ms);
        reply = other->apply_one(bob, soon());
    }
    EXPECT_THAT(reply, Granted());
}

TEST(RedisClock, AClockPutForwardNeitherLosesALockNorItsToken) {
    ServerClock clock;
    const OwnRedis redis({}, clock.environment());
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 600s);
    const Outcome before = must(store->apply_one(alice, soon()));
    clock.step(1h);
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::lock_expired))
        << "what time it was when this process looked last does not count";
    const Outcome after = must(store->apply_one(by_bob(lock("x")), soon()));
    EXPECT_GT(after.lock.token, before.lock.token);
    ASSERT_TRUE(after.stolen_from) << "the lease ran out, and the record was there";
    EXPECT_EQ(after.stolen_from->lock_id, before.lock.lease->lock_id);
    expect_sound(*store, lock("x"));
}

}  // namespace
}  // namespace holdfast::tests
