#include "support/watching_crowd.hpp"

#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

std::ptrdiff_t threads_now() { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); }

std::ptrdiff_t memory_kb_now() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == "VmRSS:") {
            std::ptrdiff_t kb = 0;
            status >> kb;
            return kb;
        }
    return 0;
}

std::chrono::microseconds since(Steady::time_point from) {
    return std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - from);
}

/// All waiters, and which of them were woken.
class WatchingCrowd {
public:
    WatchingCrowd(Store& store, int waiters) : store_(store) {
        for (int i = 0; i < waiters; ++i) wanted_.push_back(queued(by("waiter", name_, 1h), 1h));
    }
    const Acquire& at(std::size_t waiter) const { return wanted_[waiter]; }

    void take_places() {
        constexpr std::size_t batch = 250;
        for (std::size_t from = 0; from < wanted_.size(); from += batch) {
            const auto some = std::span(wanted_).subspan(from, std::min(batch, wanted_.size() - from));
            const std::vector<Request> requests(some.begin(), some.end());
            for (const Reply& reply : must(store_.apply(requests, Deadline::never())))
                if (reply || reply.error().code != Errc::lock_conflict) throw std::runtime_error("not in line");
        }
    }
    void watch(std::size_t waiter) {
        watches_[waiter] = must(store_.subscribe({.name = name_, .seen_seq = 1, .ticket = wanted_[waiter].as.lock_id},
                                                 [this, waiter](Result<std::optional<HandedOn>> result) {
                                                     const std::scoped_lock lock(mutex_);
                                                     woken_.emplace_back(waiter, std::move(result));
                                                     changed_.notify_all();
                                                 }));
    }
    void watch_all() {
        for (std::size_t i = 0; i < wanted_.size(); ++i) watch(i);
    }
    /// Lets the thread that serves watches look at all of them once: the last of them shows that it did.
    void await_watching() {
        bool has_fired = false;
        // Nobody has seen the lock without an event, so this one fires at its first look.
        const auto last = must(store_.subscribe({.name = name_, .seen_seq = 0}, [&](auto) {
            const std::scoped_lock lock(mutex_);
            has_fired = true;
            changed_.notify_all();
        }));
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return has_fired; });
    }

    /// Waits until the next waiter has the lock, and returns it.
    [[nodiscard]] std::size_t next_holder() {
        while (true) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !woken_.empty(); });
            auto [waiter, result] = std::move(woken_.front());
            woken_.pop_front();
            lock.unlock();
            ++wake_ups;
            if (must(std::move(result))) return waiter;
            // A store that does not vouch for what it sees sends its waiters to ask.
            if (store_.apply_one(wanted_[waiter], Deadline::never())) return waiter;
            watch(waiter);
        }
    }
    void release(const Acquire& holder) { must(store_.apply_one(tests::release(holder), Deadline::never())); }
    void end() { watches_.clear(); }
    /// Those that were woken and got nothing.
    [[nodiscard]] int left_over() {
        const std::scoped_lock lock(mutex_);
        return static_cast<int>(woken_.size());
    }

    int wake_ups = 0;

private:
    Store& store_;
    const LockName name_ = lock("deploy/web");
    std::vector<Acquire> wanted_{};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::pair<std::size_t, Result<std::optional<HandedOn>>>> woken_{};  ///< Guarded by mutex_.
    std::map<std::size_t, std::unique_ptr<Subscription>> watches_{};               ///< They end before the rest.
};

}  // namespace

CrowdCost cost_of_crowd(Store& store, int waiters, int grants) {
    CrowdCost cost{.grants = grants};
    const Acquire first = by_alice(lock("deploy/web"), 1h);
    must(store.apply_one(first, Deadline::never()));
    const std::ptrdiff_t threads = threads_now();
    const std::ptrdiff_t memory = memory_kb_now();
    const auto began = Steady::now();
    WatchingCrowd crowd(store, waiters);
    crowd.take_places();
    crowd.watch_all();
    crowd.await_watching();
    cost.for_all = since(began);
    cost.threads = threads_now() - threads;
    cost.memory_kb = memory_kb_now() - memory;

    const auto handing_on = Steady::now();
    crowd.release(first);
    for (int grant = 0; grant < grants; ++grant) {
        const std::size_t holder = crowd.next_holder();
        if (grant + 1 < grants) crowd.release(crowd.at(holder));
    }
    cost.for_grant = since(handing_on) / std::max(grants, 1);
    crowd.end();
    cost.wake_ups = crowd.wake_ups + crowd.left_over();
    return cost;
}

}  // namespace holdfast::tests
