// Goal: a Redis that is killed loses no grant that it acknowledged, repeats no token, and is used again by itself.
// Method: threads take and release locks all the time while the server is killed and started; every answer is written
// down, and compared with the audit logs in the end.
#include "stores/redis_fixture.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <random>
#include <set>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t lock_count = 4;

LockName shared_lock(std::size_t number) { return lock("lock " + std::to_string(number)); }

/// What one client was told.
struct Told {
    std::vector<std::pair<std::size_t, std::uint64_t>> grants;  ///< Lock and token.
    int unknown = 0;
    int unavailable = 0;
    std::vector<std::string> wrong;  ///< Answers that must not occur.
};

void work(Store& store, std::size_t seed, const std::atomic<bool>& goes_on, Told& told) {
    std::mt19937_64 random(seed);
    const auto note = [&](const Reply& reply) {
        if (reply) return;
        switch (reply.error().code) {
            case Errc::lock_conflict:
            case Errc::lock_not_held:
            case Errc::lock_expired: break;
            case Errc::outcome_unknown: ++told.unknown; break;
            case Errc::store_unavailable: ++told.unavailable; break;
            default: told.wrong.push_back(reply.error().message);
        }
    };
    while (goes_on) {
        const std::size_t number = random() % lock_count;
        const Acquire mine = by("client", shared_lock(number), 100ms);
        const Reply granted = store.apply_one(mine, within(2s));
        note(granted);
        if (!granted) {
            std::this_thread::sleep_for(1ms);
            continue;
        }
        told.grants.emplace_back(number, granted->lock.token.value);
        note(store.apply_one(release(mine), within(2s)));
    }
}

TEST(RedisKill, AServerKilledUnderLoadLosesNoGrantAndRepeatsNoToken) {
    OwnRedis redis;
    std::mt19937_64 random(seed_of("redis kill"));
    const auto store = must(redis.open());
    const auto other = must(redis.open());
    ASSERT_EQ(store->info().grade, Grade::a);
    std::vector<Told> told(8);
    std::atomic<bool> goes_on = true;
    const int kills = scaled(20);
    {
        std::vector<std::jthread> clients;
        for (std::size_t i = 0; i < told.size(); ++i)
            clients.emplace_back(
                [&, i, seed = random()] { work(i % 2 == 0 ? *store : *other, seed, goes_on, told[i]); });
        for (int i = 0; i < kills; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 200));
            redis.server().kill();
            redis.server().start();
        }
        std::this_thread::sleep_for(300ms);
        goes_on = false;
    }
    std::array<std::set<std::uint64_t>, lock_count> in_log;
    for (std::size_t number = 0; number < lock_count; ++number) {
        expect_sound(*store, shared_lock(number));
        std::uint64_t last = 0;
        for (const AuditEvent& event : must(store->history({.name = shared_lock(number)}, soon()))) {
            if (event.kind != EventKind::acquired && event.kind != EventKind::stolen) continue;
            EXPECT_GT(event.token.value, last) << "a token came again";
            last = event.token.value;
            in_log[number].insert(last);
        }
    }
    std::set<std::pair<std::size_t, std::uint64_t>> granted;
    Told all;
    for (const Told& one : told) {
        for (const auto& grant : one.grants) {
            EXPECT_TRUE(granted.insert(grant).second) << "token " << grant.second << " was given twice";
            EXPECT_TRUE(in_log[grant.first].contains(grant.second)) << "token " << grant.second << " is gone";
        }
        all.unknown += one.unknown;
        all.unavailable += one.unavailable;
        EXPECT_THAT(one.wrong, testing::IsEmpty());
        EXPECT_FALSE(one.grants.empty());
    }
    fmt::print("{} kills: {} grants, {} unknown, {} unavailable\n", kills, granted.size(), all.unknown,
               all.unavailable);
    EXPECT_GT(all.unknown + all.unavailable, 0) << "the kills met nobody";
    EXPECT_THAT(store->apply_one(by_alice(lock("after"), 1s), soon()), Granted());
    EXPECT_THAT(other->apply_one(by_bob(lock("after")), soon()), RefusedWith(Errc::lock_conflict));
}

}  // namespace
}  // namespace holdfast::tests
