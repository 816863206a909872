#include "client/join.hpp"

#include "client/hold_core.hpp"
#include "client/repeat.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

Error not_current(const LockName& name, const LockStatus& seen, const Credentials& as) {
    const bool expired = seen.lease && seen.lease->lock_id == as.lock_id;
    const std::string why = expired      ? "has run out"
                            : seen.lease ? "is not the one that holds it now"
                                         : "has ended: nobody holds it now";
    return {expired ? Errc::lock_expired : Errc::lock_not_held, fmt::format("the lease on {} {}", name.text(), why),
            std::make_shared<const LockStatus>(seen)};
}

/// What the renewal that proves the lease asks for.
Result<Ttl> ttl_for(const LockStatus& seen, const JoinTerms& terms) {
    // Without renewals, what is left of it: the proof must not make it last longer.
    if (!terms.renew) return Ttl::of(time_left(seen));
    const auto own = Ttl::of(seen.lease->ttl);
    return own && terms.at_least ? std::max(*own, *terms.at_least) : own;
}

}  // namespace

bool is_not_current(Errc code) { return code == Errc::lock_expired || code == Errc::lock_not_held; }

Result<JoinedLease> JoinedLease::prove(Store& store, const LockName& name, const Credentials& as,
                                       const JoinTerms& terms, const Clock& clock, milliseconds timeout) {
    // Read the lease first: only it tells for how long to renew it, and one that has ended must not be renewed.
    const auto seen = store.inspect(name, Deadline::in(clock, timeout));
    if (!seen) return std::unexpected(seen.error());
    if (seen->state != LockState::held || seen->lease->lock_id != as.lock_id)
        return std::unexpected(not_current(name, *seen, as));
    const auto ttl = ttl_for(*seen, terms);
    if (!ttl) return fail(Errc::lock_expired, fmt::format("the lease on {} is about to run out", name.text()));

    const Boottime sent_at = clock.boottime();
    auto renewed = apply_or_repeat(store, Renew{name, as, *ttl, Revive::no}, clock, timeout);
    if (!renewed) return std::unexpected(renewed.error());
    if (!terms.unless_held.empty()) {
        Check check{.name = name, .token = renewed->lock.token};
        check.lock_id = as.lock_id;
        check.unless_held = terms.unless_held;
        const auto still = store.apply_one(check, Deadline::in(clock, timeout));
        if (!still && still.error().code == Errc::fencing_mismatch)
            return fail(Errc::lock_not_held, still.error().message);
        if (!still) return std::unexpected(still.error());
    }
    return JoinedLease(store, Granted{std::move(*renewed), sent_at, as}, *ttl);
}

Result<Hold> JoinedLease::keep(HoldOptions options) && {
    const LockName name = granted_.lock.name;
    options = with_clock_of(*store_, std::move(options));
    options.ttl = ttl_;
    auto registration = LockOrder::enter(*store_, name, false, options);
    if (!registration) return std::unexpected(registration.error());
    auto core = std::make_unique<Hold::Core>(*store_, options, std::move(granted_), std::move(*registration),
                                             Hold::Core::AtEnd::leave);
    if (options.clock->boottime() >= core->lease().deadline()) {
        core->abandon();
        return fail(Errc::lock_expired, fmt::format("too little is left of the lease on {} to be used", name.text()));
    }
    if (options.renew_from == RenewFrom::the_grant)
        if (auto started = core->start_renewing(); !started) return std::unexpected(started.error());
    return Hold(std::move(core));
}

}  // namespace holdfast::client
