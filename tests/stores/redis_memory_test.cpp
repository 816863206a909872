// Goal: what Redis does with keys and numbers takes no lock away. Method: a server of the test's own, short of memory.
#include "stores/redis_fixture.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// Writes keys of another program until Redis had to evict nearly all that it may: few fit into its memory at a time.
void press(RedisByHand& server) {
    const std::string value(500'000, 'x');
    for (int i = 0; i < 200; ++i) server.ask({"SET", "cached " + std::to_string(i), value, "EX", "10000"});
    EXPECT_EQ(server.ask({"INFO", "stats"}).find("evicted_keys:0\r"), std::string::npos) << "nothing was evicted";
}

/// Everything that a store writes: records, tickets, events, indexes.
void use_everything(Store& store) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store.apply_one(alice, soon()));
    EXPECT_FALSE(store.apply_one(queued(by_bob(lock("x"))), soon()));
    EXPECT_FALSE(store.apply_one(queued(by_carol(lock("x"))), soon()));
    must(store.apply_one(renewal(alice), soon()));
    const Acquire other = by_alice(lock("y"), 1h);
    must(store.apply_one(other, soon()));
    must(store.apply_one(release(other), soon()));
}

// Redis counts it by the wall clock: put forward by an hour, a lock that was held for ten minutes was gone at once.
TEST(RedisMemory, NoKeyHasATimeToLive) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    use_everything(*store);
    RedisByHand server = redis.by_hand();
    const auto keys = server.keys("holdfast");
    EXPECT_GE(keys.size(), 9U);
    for (const std::string& key : keys) EXPECT_EQ(server.ask({"PTTL", key}), "-1") << key;
}

// A server that is short of memory evicts keys with a time to live first.
TEST(RedisMemory, EvictionOfKeysWithATimeToLiveTakesNoLock) {
    const OwnRedis redis({"--maxmemory", "8mb", "--maxmemory-policy", "volatile-lru"});
    const auto store = must(redis.open());
    EXPECT_NE(store->info().grade, Grade::c);
    const Acquire alice = by_alice(lock("x"), 1h);
    const Outcome granted = must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    press(server);
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).lease, granted.lock.lease);
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    expect_sound(*store, lock("x"));
}

// Redis refuses a script at its first write that needs memory, and takes back nothing that it wrote before. A renewal
// that is refused must be known to be refused, and a full server must not keep its locks for ever.
TEST(RedisMemory, OutOfMemoryIsRefusedAndChangesNothingAndReleasingWorks) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    const Acquire other = by_alice(lock("y"), 1h);
    must(store->apply_one(other, soon()));
    RedisByHand server = redis.by_hand();
    server.ask({"CONFIG", "SET", "maxmemory", "100000"});
    const LockStatus before = must(store->inspect(lock("x"), soon()));
    const auto keys = server.keys("holdfast");

    EXPECT_THAT(store->apply_one(by_bob(lock("new")), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply_one(queued(by_bob(lock("x"))), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->apply(std::vector<Request>{by_bob(lock("a")), by_bob(lock("b"))}, soon()),
                RefusedWith(Errc::store_unavailable));

    EXPECT_EQ(server.keys("holdfast"), keys);
    const LockStatus after = must(store->inspect(lock("x"), soon()));
    EXPECT_EQ(after.lease, before.lease);
    EXPECT_EQ(after.seq, before.seq);
    expect_sound(*store, lock("x"));
    EXPECT_THAT(store->apply_one(release(other), soon()), Granted());
    expect_sound(*store, lock("y"));

    server.ask({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    EXPECT_THAT(store->apply_one(by_bob(lock("new")), soon()), Granted());
}

// Lua counts in doubles and writes 14 digits of them, unless told otherwise.
TEST(RedisNumbers, TimesAndTokensAreExactUpToTheLastOnes) {
    const OwnRedis redis;
    // 2^53 is ...740992.
    ManualClock clock(Instant{std::chrono::milliseconds{9'007'199'254'739'001}});
    const auto store = must(open_store(redis.url(), clock));
    std::uint64_t last = 0;
    for (int i = 0; i < 5; ++i) {
        const Acquire one = by_alice(lock("x"), 100ms);
        const Outcome granted = must(store->apply_one(one, Deadline::never()));
        EXPECT_EQ(granted.lock.token.value, i == 0 ? 9'007'199'254'739'001U : last + 1);
        last = granted.lock.token.value;
        EXPECT_EQ(must(must(redis.open())->inspect(lock("x"), soon())).token.value, last);
        must(store->apply_one(release(one), Deadline::never()));
    }
    must(store->apply_one(by_alice(lock("x"), 500ms), Deadline::never()));
    EXPECT_FALSE(store->apply_one(queued(by_bob(lock("x")), 101ms), Deadline::never()));
    EXPECT_FALSE(store->apply_one(queued(by_carol(lock("x")), 103ms), Deadline::never()));
    const auto waiters = [&] { return must(store->inspect(lock("x"), Deadline::never())).waiters; };
    clock.advance(100ms);
    EXPECT_EQ(waiters(), 2U);
    clock.advance(1ms);
    EXPECT_EQ(waiters(), 1U);
    clock.advance(1ms);
    EXPECT_EQ(waiters(), 1U);
    clock.advance(1ms);
    EXPECT_EQ(waiters(), 0U);
    const auto changed_since = [&](std::chrono::milliseconds ago) {
        return must(store->list({.with_free = true, .changed_since = clock.wall() - ago}, Deadline::never())).size();
    };
    EXPECT_EQ(changed_since(103ms), 1U);
    EXPECT_EQ(changed_since(102ms), 0U);
}

}  // namespace
}  // namespace holdfast::tests
