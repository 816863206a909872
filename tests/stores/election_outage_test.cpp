// Goal: when the server of an election is away and comes back, observers hear of it, there is a leader again, and there
// were never two at once. Method: two candidates and an observer, each with a Store object of its own, behind a proxy
// that breaks off or falls silent; a fenced register judges. `make election-campaign` runs more rounds.
#include "holdfast/election.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/proxy.hpp"
#include "support/time_limit.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <condition_variable>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// Refuses the token of every leader but the newest.
class FencedRegister {
public:
    [[nodiscard]] bool write(FencingToken token) {
        const std::scoped_lock lock(mutex_);
        if (token < newest_) return false;
        newest_ = token;
        return true;
    }
    [[nodiscard]] FencingToken newest() const {
        const std::scoped_lock lock(mutex_);
        return newest_;
    }

private:
    mutable std::mutex mutex_;
    FencingToken newest_{};  ///< Guarded by mutex_.
};

/// Campaigns, writes as long as it leads, and campaigns again.
class Candidate {
public:
    Candidate(const std::string& url, std::string name, FencedRegister& judge)
        : store_(must(open_store(url))), name_(std::move(name)), judge_(judge) {}

    void resign_soon() { resigns_ = true; }
    [[nodiscard]] bool leads() const { return leads_; }

private:
    void run(const std::stop_token& stop) {
        const Election election(*store_, lock("leader"));
        while (!stop.stop_requested()) {
            HoldOptions options;
            options.holder = {name_, ""};
            options.ttl = lasting(1500ms);
            options.cancel = stop;
            auto term = election.campaign(name_, options);
            if (!term) continue;
            leads_ = true;
            do {
                lead(*term);
            } while (!stop.stop_requested() && !term->lost().stop_requested() && !resigns_.exchange(false));
            leads_ = false;
            static_cast<void>(term->resign());
        }
    }

    void lead(const Leadership& term) {
        if (!judge_.write(term.token())) {
            // Somebody was elected after it. That may only happen when it trusts its lease no more.
            EXPECT_GE(host_clock().boottime(), term.hold().deadline()) << name_ << " leads beside somebody else";
        }
        std::this_thread::sleep_for(1ms);
    }

    const std::unique_ptr<Store> store_;
    const std::string name_;
    FencedRegister& judge_;
    std::atomic<bool> resigns_ = false;
    std::atomic<bool> leads_ = false;
    std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

/// What an observer was told last, and when.
class Told {
public:
    void operator()(const Result<std::optional<Leader>>& seen) {
        const std::scoped_lock lock(mutex_);
        is_away_ = !seen;
        leader_ = seen && *seen ? (*seen)->token : FencingToken{};
        changed_.notify_all();
    }
    /// How long it took.
    [[nodiscard]] milliseconds await_away() {
        return await([&] { return is_away_; });
    }
    [[nodiscard]] milliseconds await_leader_above(FencingToken token) {
        return await([&] { return leader_ > token; });
    }

private:
    template <class Holds>
    milliseconds await(Holds holds) {
        const Boottime since = host_clock().boottime();
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, time_limit, holds)) throw std::runtime_error("the observer was not told");
        return host_clock().boottime() - since;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_away_ = false;   ///< Guarded by mutex_.
    FencingToken leader_{};  ///< Guarded by mutex_.
};

class ElectionOutage : public testing::TestWithParam<std::string> {
protected:
    /// A way in which a server is away.
    void take_away(bool silently) {
        if (silently)
            proxy_.become({.holds_requests = true, .holds_replies = true});
        else
            proxy_.leave();
    }
    void bring_back(bool silently) {
        if (silently)
            proxy_.become({});
        else
            proxy_.come_back();
    }

    const ServerPlace place_{GetParam()};
    Proxy proxy_{place_.port()};
};

TEST_P(ElectionOutage, HasALeaderAgainAndNeverTwo) {
    std::mt19937_64 random(seed_of("outages of an election", 21));
    const std::string url = place_.url(proxy_.port());
    FencedRegister judge;
    Candidate one(url, "one", judge);
    Candidate two(url, "two", judge);
    const auto store = must(open_store(url));
    Told told;
    const auto watch = must(Election(*store, lock("leader")).observe([&](const auto& seen) { told(seen); }));

    milliseconds longest{0};
    FencingToken before{};
    const int rounds = scaled(1);
    for (int round = 0; round < rounds; ++round) {
        static_cast<void>(told.await_leader_above(before));
        // Some outages meet a term, and others the change of the leader.
        if (random() % 2 == 0) (one.leads() ? one : two).resign_soon();
        std::this_thread::sleep_for(milliseconds{random() % 30});
        const bool silently = random() % 2 == 0;
        take_away(silently);
        longest = std::max(longest, told.await_away());
        // Whoever led finds out by itself. A leader that could not resign leads no more all the same.
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while ((one.leads() || two.leads()) && !end.passed(host_clock())) std::this_thread::sleep_for(1ms);
        ASSERT_FALSE(one.leads() || two.leads()) << "in round " << round;
        before = judge.newest();
        bring_back(silently);
    }
    static_cast<void>(told.await_leader_above(before));
    std::cout << fmt::format("{}: {} rounds; observers heard of an outage within {} ms\n", GetParam(), rounds,
                             longest.count());
}

INSTANTIATE_TEST_SUITE_P(Servers, ElectionOutage, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
