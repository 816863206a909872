#include "base/jitter.hpp"
#include "client/hold_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

/// How much must be left of a lease that was handed over, so that it can be renewed before the work has to stop. Absent
/// if nobody renews it: then it is extended before it is used.
std::optional<milliseconds> least_time_to_renew(const HoldOptions& options) {
    if (!options.renew) return std::nullopt;
    return std::min(options.ttl.time() / 2, options.time_to_stop + milliseconds{1000});
}

/// Asks at once, then again as `options.retry` says, with jitter so that callers spread out.
Result<client::Granted> acquire_with_retry(Store& store, const Acquire& request, const HoldOptions& options) {
    std::condition_variable_any sleep;
    std::mutex mutex;
    for (unsigned attempt = 0;; ++attempt) {
        auto granted =
            client::acquire_now(store, request, *options.clock, Deadline::in(*options.clock, options.ttl.time() / 3));
        const bool again = !granted && (granted.error().code == Errc::lock_conflict ||
                                        granted.error().code == Errc::store_unavailable);
        if (!again) return granted;
        if (options.observer) options.observer({HoldEventKind::blocked, request.name, std::nullopt, granted.error()});
        if (attempt == options.retry.attempts || options.cancel.stop_requested()) return granted;

        const std::int64_t factor =
            options.retry.growth == Growth::linear ? attempt + 1 : std::int64_t{1} << std::min(attempt, 10U);
        const milliseconds most = options.retry.pause * factor;
        const milliseconds pause = base::random_between(most / 2, most);
        std::unique_lock lock(mutex);
        sleep.wait_for(lock, options.cancel, pause, [] { return false; });
    }
}

}  // namespace

Result<Hold> hold(Store& store, const LockName& name, const HoldOptions& given) {
    const HoldOptions options = client::with_clock_of(store, given);
    const bool waits = options.wait > milliseconds{0};
    auto registration = client::LockOrder::enter(store, name, waits, *options.clock);
    if (!registration) return std::unexpected(registration.error());

    const Acquire request{name,        Credentials::random(), options.holder, options.operation,   options.reason,
                          options.ttl, options.max_hold,      std::nullopt,   options.unless_held, options.meta};
    const auto tell = [&](HoldEventKind kind, std::optional<Error> cause) {
        if (options.observer) options.observer({kind, name, std::nullopt, std::move(cause)});
    };
    tell(HoldEventKind::acquiring, std::nullopt);
    const client::Patience patience{Deadline::in(*options.clock, options.wait), options.cancel,
                                    [&](const Error& conflict) { tell(HoldEventKind::blocked, conflict); },
                                    least_time_to_renew(options)};
    auto granted = waits ? client::acquire_in_turn(store, request, *options.clock, patience)
                         : acquire_with_retry(store, request, options);
    if (!granted) return std::unexpected(granted.error());

    auto core = std::make_unique<Hold::Core>(store, options, *std::move(granted), std::move(*registration),
                                             Hold::Core::AtEnd::release);
    if (options.clock->boottime() >= core->lease().deadline()) {
        // The answer took longer than the lease lasts: nobody may act on it.
        auto released = core->release();
        return fail(Errc::lock_expired, fmt::format("{} was granted too late to be used", name.text()));
    }
    if (auto started = core->start(); !started) return std::unexpected(started.error());
    return Hold(std::move(core));
}

}  // namespace holdfast
