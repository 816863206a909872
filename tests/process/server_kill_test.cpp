// Goal: a server that is killed loses no grant that it acknowledged and repeats no token; its clients come back by
// themselves and find out what became of requests that were never answered. Method: threads take, renew and release
// locks all the time while a server of the test's own is killed and started. Every answer is written down, and
// compared with the audit logs in the end.
#include "holdfast/open.hpp"
#include "process/shared_store.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t client_count = 8;
constexpr std::size_t lock_count = 4;
/// No lease ends by itself: what is gone was lost.
constexpr auto ttl = 10min;

LockName lock_number(std::size_t number) { return lock("lock " + std::to_string(number)); }

/// What all clients were told.
class Ledger {
public:
    void granted(std::size_t number, const Lease& lease) {
        EXPECT_FALSE(is_held_[number].exchange(true)) << "two hold it";
        const std::scoped_lock guard(mutex_);
        EXPECT_TRUE(grants_[number].emplace(lease.token.value, lease.lock_id).second) << "a token came again";
        ++count_;
    }
    void releasing(std::size_t number) { is_held_[number] = false; }
    void not_done(const LockId& lock_id) {
        const std::scoped_lock guard(mutex_);
        not_done_.insert(lock_id);
    }
    [[nodiscard]] int count() const { return count_; }

    /// Once nobody works any more.
    void compare_with(Store& store) const {
        for (std::size_t number = 0; number < lock_count; ++number) {
            sound_status(store, lock_number(number));
            std::map<std::uint64_t, LockId> kept;
            for (const AuditEvent& event : must(store.history({.name = lock_number(number)}, patient()))) {
                if (event.kind == EventKind::acquired) kept.emplace(event.token.value, event.lock_id);
                EXPECT_FALSE(not_done_.contains(event.lock_id)) << "what was not done was done";
            }
            for (const auto& grant : grants_[number])
                EXPECT_THAT(kept, testing::Contains(grant)) << "an acknowledged grant is gone";
        }
    }

    std::atomic<int> under_way = 0;  ///< Calls.
    std::atomic<int> unknown = 0;
    std::atomic<int> unavailable = 0;

private:
    std::array<std::atomic<bool>, lock_count> is_held_{};
    std::atomic<int> count_ = 0;
    std::mutex mutex_;
    std::array<std::map<std::uint64_t, LockId>, lock_count> grants_{};  ///< Guarded by mutex_. Lock ids by token.
    std::set<LockId> not_done_{};                                       ///< Guarded by mutex_.
};

/// An answer that is sure, and whether one before it was not.
struct Known {
    Reply reply;
    bool after_doubt = false;
};

class Client {
public:
    Client(Store& store, Ledger& ledger, std::uint64_t seed) : store_(store), ledger_(ledger), random_(seed) {}

    void work(const std::stop_token& stop) {
        while (!stop.stop_requested() && !testing::Test::HasFailure()) take_one(random_() % lock_count);
    }

private:
    void take_one(std::size_t number) {
        const Acquire mine = by("client", lock_number(number), ttl);
        const Known grant = ask(mine, Insist::if_in_doubt);
        if (!grant.reply) {
            const Errc code = grant.reply.error().code;
            EXPECT_THAT(code, testing::AnyOf(Errc::lock_conflict, Errc::store_unavailable));
            if (code == Errc::store_unavailable) ledger_.not_done(mine.as.lock_id);
            std::this_thread::sleep_for(1ms);
            return;
        }
        ledger_.granted(number, *grant.reply->lock.lease);
        EXPECT_THAT(ask(renewal(mine), Insist::always).reply, Granted());
        ledger_.releasing(number);
        const Known released = ask(release(mine), Insist::always);
        const bool was_done = !released.reply && released.reply.error().code == Errc::lock_not_held;
        EXPECT_TRUE(released.reply || (released.after_doubt && was_done)) << released.reply.error().message;
    }

    enum class Insist { if_in_doubt, always };

    /// Repeats the request until its outcome is known; with `always`, until the server is there.
    [[nodiscard]] Known ask(const Request& request, Insist insist) {
        Known known{call(request)};
        for (const Deadline give_up = patient(); !known.reply && !give_up.passed(host_clock());) {
            const Errc code = known.reply.error().code;
            if (code != Errc::outcome_unknown && code != Errc::store_unavailable) break;
            ++(code == Errc::outcome_unknown ? ledger_.unknown : ledger_.unavailable);
            known.after_doubt = known.after_doubt || code == Errc::outcome_unknown;
            if (insist == Insist::if_in_doubt && !known.after_doubt) break;
            std::this_thread::sleep_for(1ms);
            known.reply = call(request);
        }
        return known;
    }

    /// Some give up before the server is back, others do not need to know that it was gone.
    [[nodiscard]] Reply call(const Request& request) {
        ++ledger_.under_way;
        Reply reply = store_.apply_one(request, Deadline::in(host_clock(), random_() % 2 == 0 ? 100ms : 2s));
        --ledger_.under_way;
        return reply;
    }

    Store& store_;
    Ledger& ledger_;
    std::mt19937_64 random_;
};

class ServerKill : public testing::TestWithParam<std::string> {};

TEST_P(ServerKill, UnderLoadLosesNoGrantAndRepeatsNoToken) {
    std::mt19937_64 random(seed_of("server kill/" + GetParam()));
    const auto server = start_server(GetParam());
    const ServerPlace place(GetParam(), server->port());
    const std::array stores{must(open_store(place.url())), must(open_store(place.url()))};
    ASSERT_EQ(stores[0]->info().grade, Grade::a);
    Ledger ledger;
    int met = 0;
    const int kills = scaled(20);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < client_count; ++i)
            threads.emplace_back([&, i, seed = random()](const std::stop_token& stop) {
                Client(*stores[i % stores.size()], ledger, seed).work(stop);
            });
        const auto await_grants = [&] {
            const int enough = ledger.count() + 10;
            for (const Deadline give_up = patient(); ledger.count() < enough; std::this_thread::sleep_for(1ms))
                ASSERT_FALSE(HasFailure() || give_up.passed(host_clock())) << "the clients do not come back";
        };
        for (int i = 0; i < kills && !HasFailure(); ++i) {
            await_grants();
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
            met += ledger.under_way;
            server->kill();
            server->start();
        }
        await_grants();
    }
    ledger.compare_with(*stores[1]);
    fmt::print("{}: {} kills met {} calls, {} grants, {} calls ended unknown, {} unavailable\n", GetParam(), kills, met,
               ledger.count(), ledger.unknown.load(), ledger.unavailable.load());
    EXPECT_GT(met, 0);
}

INSTANTIATE_TEST_SUITE_P(Servers, ServerKill, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
