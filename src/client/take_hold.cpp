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

/// Tells the observer who or what is in the way: once for each lease and each reason.
class BlockedNotice {
public:
    BlockedNotice(const HoldOptions& options, const LockName& name) : options_(options), name_(name) {}

    void tell(const Error& cause) {
        if (!options_.observer) return;
        Seen now{cause.code, std::nullopt, std::nullopt};
        if (cause.holder) now.name = cause.holder->name;
        if (cause.holder && cause.holder->lease) now.lock_id = cause.holder->lease->lock_id;
        if (now == told_) return;
        told_ = std::move(now);
        options_.observer({HoldEventKind::blocked, name_, std::nullopt, cause});
    }

private:
    struct Seen {
        Errc code;
        std::optional<LockName> name;
        std::optional<LockId> lock_id;
        [[nodiscard]] bool operator==(const Seen&) const = default;
    };

    const HoldOptions& options_;
    const LockName& name_;
    std::optional<Seen> told_{};
};

/// Asks at once, then again as `options.retry` says, with jitter so that callers spread out.
Result<client::Granted> acquire_with_retry(Store& store, const Acquire& request, const HoldOptions& options,
                                           BlockedNotice& notice) {
    std::condition_variable_any sleep;
    std::mutex mutex;
    for (unsigned attempt = 0;; ++attempt) {
        auto granted =
            client::acquire_now(store, request, *options.clock, Deadline::in(*options.clock, options.ttl.time() / 3));
        const bool again = !granted && (granted.error().code == Errc::lock_conflict ||
                                        granted.error().code == Errc::store_unavailable);
        if (!again) return granted;
        notice.tell(granted.error());
        if (attempt == options.retry.attempts || options.cancel.stop_requested()) return granted;

        const std::int64_t factor =
            options.retry.growth == Growth::linear ? attempt + 1 : std::int64_t{1} << std::min(attempt, 10U);
        const milliseconds most = options.retry.pause * factor;
        const milliseconds pause = base::random_between(most / 2, most);
        std::unique_lock lock(mutex);
        sleep.wait_for(lock, options.cancel, pause, [] { return false; });
    }
}

/// The refusal of a wait that has ended. A store that was away, and an outcome that nobody knows, stay what they are,
/// except that a cancelled wait for a store that was away has changed nothing.
Error end_of_wait(Error refusal, const HoldOptions& options) {
    const bool waited = options.wait > milliseconds{0};
    if (options.cancel.stop_requested()) {
        if (refusal.code == Errc::lock_conflict || refusal.code == Errc::store_unavailable)
            refusal.code = Errc::cancelled;
    } else if (waited && refusal.code == Errc::lock_conflict) {
        refusal.code = Errc::timed_out;
    }
    return refusal;
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

    const Acquire request{name,    Credentials::random(), own.holder,   own.operation,   own.reason,
                          own.ttl, own.max_hold,          std::nullopt, own.unless_held, own.meta};
    if (own.observer) own.observer({HoldEventKind::acquiring, name, std::nullopt, std::nullopt});
    BlockedNotice notice(own, name);
    const client::Patience patience{Deadline::in(*own.clock, own.wait), own.cancel,
                                    [&](const Error& cause) { notice.tell(cause); }, least_time_to_renew(own)};
    auto granted = waits ? client::acquire_in_turn(store, request, *own.clock, patience)
                         : acquire_with_retry(store, request, own, notice);
    if (!granted) return std::unexpected(end_of_wait(std::move(granted.error()), own));

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
