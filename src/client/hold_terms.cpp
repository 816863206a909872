#include "client/hold_terms.hpp"

#include "base/jitter.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::client {

using std::chrono::milliseconds;

Acquire acquire_for(const LockName& name, const HoldOptions& options) {
    return {name,        Credentials::random(), options.holder, options.operation,   options.reason,
            options.ttl, options.max_hold,      std::nullopt,   options.unless_held, options.meta};
}

std::optional<milliseconds> least_time_to_renew(const HoldOptions& options) {
    if (!options.renew) return std::nullopt;
    return std::min(options.ttl.time() / 2, options.time_to_stop + milliseconds{1000});
}

std::optional<milliseconds> pause_before_retry(const Retry& retry, unsigned attempts_made) {
    if (attempts_made == retry.attempts) return std::nullopt;
    const std::int64_t factor =
        retry.growth == Growth::linear ? attempts_made + 1 : std::int64_t{1} << std::min(attempts_made, 10U);
    const milliseconds most = retry.pause * factor;
    return base::random_between(most / 2, most);
}

Error end_of_wait(Error refusal, const WaitAsked& asked) {
    if (asked.is_cancelled) {
        if (refusal.code == Errc::lock_conflict || refusal.code == Errc::store_unavailable)
            refusal.code = Errc::cancelled;
    } else if (asked.waited && refusal.code == Errc::lock_conflict) {
        refusal.code = Errc::timed_out;
    }
    return refusal;
}

void BlockedNotice::tell(const Error& cause) {
    if (!options_.observer) return;
    Seen now{cause.code, std::nullopt, std::nullopt};
    if (cause.holder) now.name = cause.holder->name;
    if (cause.holder && cause.holder->lease) now.lock_id = cause.holder->lease->lock_id;
    if (now == told_) return;
    told_ = std::move(now);
    options_.observer({HoldEventKind::blocked, name_, std::nullopt, cause});
}

}  // namespace holdfast::client
