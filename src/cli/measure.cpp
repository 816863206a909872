#include "cli/measure.hpp"

#include "client/waiter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Stopwatch = std::chrono::steady_clock;

/// Longer than any call should take, and short enough that the lease of a killed client blocks nobody for long.
constexpr milliseconds lease_time{10'000};

microseconds since(Stopwatch::time_point start) {
    return std::chrono::duration_cast<microseconds>(Stopwatch::now() - start);
}

Spread spread_of(std::vector<microseconds> times) {
    if (times.empty()) return {};
    std::ranges::sort(times);
    const auto at = [&](std::size_t percent) { return times[(times.size() - 1) * percent / 100]; };
    return {times.size(), at(50), at(90), at(99), times.back()};
}

Acquire request_for(const LockName& name, const Holder& holder) {
    Acquire request{.name = name, .as = Credentials::random(), .holder = holder, .ttl = *Ttl::of(lease_time)};
    request.operation = "bench";
    return request;
}

/// When to stop, and the first thing that went wrong, for all clients of a measurement.
class Course {
public:
    explicit Course(const Workload& work) : work_(work), start_(Stopwatch::now()) {}

    /// Whether a client that has been through it `times` begins once more. Every client begins once, however late it
    /// comes to run: no figures of a store that was never asked.
    [[nodiscard]] bool goes_on(std::size_t times) const {
        return !failed_ && !work_.stop.stop_requested() && (times == 0 || Stopwatch::now() - start_ < work_.time);
    }
    void fail_with(const Error& error) {
        const std::scoped_lock lock(mutex_);
        if (!error_) error_ = error;
        failed_ = true;
    }
    [[nodiscard]] Deadline soon() const { return Deadline::in(work_.clock, lease_time); }
    [[nodiscard]] std::chrono::duration<double> taken() const { return Stopwatch::now() - start_; }

    /// Runs `client` in as many threads as there are clients, and reports progress meanwhile.
    template <class Client>
    Result<void> run(Client client) {
        std::atomic<unsigned> running = work_.clients;
        {
            std::vector<std::jthread> threads;
            for (unsigned i = 0; i < work_.clients; ++i)
                threads.emplace_back([&, i] {
                    client(i);
                    --running;
                });
            while (running > 0) {
                if (work_.progress) work_.progress(std::min(taken() / work_.time, 1.0));
                std::this_thread::sleep_for(milliseconds{50});
            }
        }
        if (error_) return std::unexpected(*error_);
        return {};
    }

private:
    const Workload& work_;
    Stopwatch::time_point start_;
    std::atomic<bool> failed_ = false;
    std::mutex mutex_;
    std::optional<Error> error_;  ///< Guarded by mutex_.
};

/// A name that no other run of the bench uses at the same time.
LockName bench_name(const std::string& what) {
    static const std::string run = LockId::random().text().substr(0, 8);
    return *LockName::parse(fmt::format("holdfast-bench/{}/{}", run, what));
}

}  // namespace

Result<Pairs> measure_pairs(const Workload& work) {
    struct Times {
        std::vector<microseconds> acquire;
        std::vector<microseconds> release;
    };
    std::vector<Times> times(work.clients);
    Course course(work);
    const auto done = course.run([&](unsigned client) {
        const LockName name = bench_name(std::to_string(client));
        while (course.goes_on(times[client].release.size())) {
            const Acquire request = request_for(name, work.holder);
            const auto asked = Stopwatch::now();
            const auto granted = work.store.apply_one(request, course.soon());
            if (!granted) return course.fail_with(granted.error());
            times[client].acquire.push_back(since(asked));
            const auto gave = Stopwatch::now();
            const auto released = work.store.apply_one(Release{request.name, request.as}, course.soon());
            if (!released) return course.fail_with(released.error());
            times[client].release.push_back(since(gave));
        }
    });
    const double seconds = course.taken().count();
    if (!done) return std::unexpected(done.error());
    Times all;
    for (const Times& one : times) {
        all.acquire.insert(all.acquire.end(), one.acquire.begin(), one.acquire.end());
        all.release.insert(all.release.end(), one.release.begin(), one.release.end());
    }
    const auto per_second = static_cast<std::uint64_t>(static_cast<double>(all.release.size()) / seconds);
    return Pairs{per_second, spread_of(std::move(all.acquire)), spread_of(std::move(all.release))};
}

Result<Spread> measure_handover(const Workload& work) {
    // Only the holder reads and writes these, so the lock under test guards them.
    std::optional<Stopwatch::time_point> given_back;
    std::vector<microseconds> times;
    Course course(work);
    const LockName name = bench_name("handover");
    const auto done = course.run([&](unsigned) {
        for (std::size_t turn = 0; course.goes_on(turn); ++turn) {
            const Acquire request = request_for(name, work.holder);
            // Like a client that renews: a lock that is handed on is taken as it is.
            const client::Patience patience{
                .deadline = course.soon(), .stop = work.stop, .enough = std::chrono::milliseconds{0}};
            const auto granted = client::acquire_in_turn(work.store, request, work.clock, patience);
            const auto now = Stopwatch::now();
            if (!granted && work.stop.stop_requested()) return;
            if (!granted) return course.fail_with(granted.error());
            if (given_back) times.push_back(std::chrono::duration_cast<microseconds>(now - *given_back));
            given_back = Stopwatch::now();
            const auto released = work.store.apply_one(Release{name, granted->as}, course.soon());
            if (!released) return course.fail_with(released.error());
        }
    });
    if (!done) return std::unexpected(done.error());
    return spread_of(std::move(times));
}

}  // namespace holdfast::cli
