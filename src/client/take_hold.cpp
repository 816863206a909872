#include "client/hold_core.hpp"
#include "client/hold_terms.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

/// Asks at once, then again as `options.retry` says.
Result<client::Granted> acquire_with_retry(Store& store, const Acquire& request, const HoldOptions& options,
                                           client::BlockedNotice& notice) {
    std::condition_variable_any sleep;
    std::mutex mutex;
    for (unsigned attempt = 0;; ++attempt) {
        auto granted =
            client::acquire_now(store, request, *options.clock, Deadline::in(*options.clock, options.ttl.time() / 3));
        const bool again = !granted && (granted.error().code == Errc::lock_conflict ||
                                        granted.error().code == Errc::store_unavailable);
        if (!again) return granted;
        notice.tell(granted.error());
        const auto pause = client::pause_before_retry(options.retry, attempt);
        if (!pause || options.cancel.stop_requested()) return granted;
        std::unique_lock lock(mutex);
        sleep.wait_for(lock, options.cancel, *pause, [] { return false; });
    }
}

}  // namespace

Result<Hold> hold(Store& store, std::string_view name, const HoldOptions& options) {
    const auto parsed = LockName::parse(name);
    if (!parsed) return std::unexpected(parsed.error());
    return hold(store, *parsed, options);
}

Result<Hold> hold(Store& store, const LockName& name, const HoldOptions& options) {
    const HoldOptions own = client::with_clock_of(store, options);
    const bool waits = own.wait > milliseconds{0};
    auto registration = client::LockOrder::enter(store, name, waits, own);
    if (!registration) return std::unexpected(registration.error());

    const Acquire request = client::acquire_for(name, own);
    if (own.observer) own.observer({HoldEventKind::acquiring, name, std::nullopt, std::nullopt});
    client::BlockedNotice notice(own, name);
    const client::Patience patience{Deadline::in(*own.clock, own.wait), own.cancel,
                                    [&](const Error& cause) { notice.tell(cause); }, client::least_time_to_renew(own)};
    auto granted = waits ? client::acquire_in_turn(store, request, *own.clock, patience)
                         : acquire_with_retry(store, request, own, notice);
    if (!granted)
        return std::unexpected(client::end_of_wait(std::move(granted.error()), {waits, own.cancel.stop_requested()}));

    auto core = std::make_unique<Hold::Core>(store, own, *std::move(granted), std::move(*registration),
                                             Hold::Core::AtEnd::release);
    if (own.clock->boottime() >= core->lease().deadline()) {
        // The answer took longer than the lease lasts: nobody may act on it.
        auto released = core->release();
        return fail(Errc::lock_expired, fmt::format("{} was granted too late to be used", name.text()));
    }
    if (auto started = core->start(); !started) return std::unexpected(started.error());
    return Hold(std::move(core));
}

}  // namespace holdfast
