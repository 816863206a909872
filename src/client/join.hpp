#pragma once

#include "client/waiter.hpp"
#include "holdfast/hold.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace holdfast::client {

/// How a lease that is held already is joined.
struct JoinTerms {
    std::vector<LockName> unless_held{};  ///< Refused with `lock_conflict` while one of these is held.
    std::optional<Ttl> at_least{};        ///< Renewed for its own ttl, or for this if it is longer. Never for less:
                                          ///< others count on it.
    bool renew = true;                    ///< False: proved, but not extended.
};

/// A lease of a command around this one: that command took it, releases it, and has passed on its key.
class JoinedLease {
public:
    /// Proves by a renewal that `as` holds `name` now. The public lock_id alone proves nothing.
    ///
    /// `lock_expired` or `lock_not_held` if it does not: then there is nothing to join (`is_not_current`). A lease that
    /// ran out is not revived. `unless_held` is decided in one step with whether the lease is still the current one.
    [[nodiscard]] static Result<JoinedLease> prove(Store& store, const LockName& name, const Credentials& as,
                                                   const JoinTerms& terms, const Clock& clock,
                                                   std::chrono::milliseconds timeout);

    [[nodiscard]] const Granted& granted() const { return granted_; }
    [[nodiscard]] Store& store() const { return *store_; }
    /// The credentials for renewals.
    [[nodiscard]] Ttl ttl() const { return ttl_; }

    /// Keeps it renewed as `options` say, but always for its own ttl. `release` of such a hold ends the renewing and
    /// gives nothing back. `lock_expired` if too little of the lease is left to be used.
    [[nodiscard]] Result<Hold> keep(HoldOptions options) &&;

private:
    JoinedLease(Store& store, Granted granted, Ttl ttl) : store_(&store), granted_(std::move(granted)), ttl_(ttl) {}

    Store* store_;
    Granted granted_;
    Ttl ttl_;
};

/// True if a refusal to join means that the lease has ended, or never was a lease of the lock.
[[nodiscard]] bool is_not_current(Errc code);

}  // namespace holdfast::client
