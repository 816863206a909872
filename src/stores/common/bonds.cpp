#include "stores/common/bonds.hpp"

#include "stores/common/batch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores {

using base::Bond;

void Bonds::bind_ticket(const LockId& ticket) {
    if (!serves_others_ && presence_.all().are_usable()) static_cast<void>(presence_.bind(ticket, Bond::ticket));
}

Result<void> Bonds::bind_session(const Request& request, const kernel::Decision& decision) {
    if (sessions_ == Sessions::off) return {};
    if (const auto* acquire = std::get_if<Acquire>(&request)) {
        // A place in the queue as well: the lock may be handed on to it.
        if (!decision.reply && !decision.put_ticket) return {};
        if (auto bound = presence_.bind(acquire->as.lock_id, Bond::session); !bound)
            return fail(Errc::store_unavailable, "the lease cannot be bound to this process: " + bound.error().message +
                                                     "; nothing was changed");
    } else if (const auto* renew = std::get_if<Renew>(&request)) {
        // A renewal must not fail for that. Without it the lease is one that ends with its ttl.
        if (decision.reply) static_cast<void>(presence_.bind(renew->as.lock_id, Bond::session));
    } else if (const auto* cancel = std::get_if<Cancel>(&request)) {
        if (decision.drop_ticket) forget_lease(cancel->as.lock_id);
    }
    return {};
}

void Bonds::end_abandoned(const Request& request, Instant now, kernel::Record& record) const {
    if (record.held && takes_over(request, record.held->lease)) end_abandoned(now, record);
}

void Bonds::end_abandoned(Instant now, kernel::Record& record) const {
    if (!record.held || record.held->lease.expires_at <= now) return;
    Lease& lease = record.held->lease;
    if (presence_.all().is_gone(lease.lock_id, Bond::session)) lease.expires_at = now;
}

std::optional<LockId> Bonds::ended_between(const kernel::Record& before, const kernel::Record& after) {
    if (!before.held) return std::nullopt;
    const LockId& lease = before.held->lease.lock_id;
    return after.held && after.held->lease.lock_id == lease ? std::nullopt : std::optional(lease);
}

std::optional<int> Bonds::duplicate() const { return sessions_ == Sessions::on ? presence_.duplicate() : std::nullopt; }

Result<base::Presences> presences_in(const std::string& folder, const base::Promise& promise,
                                     Bonds::Sessions sessions) {
    using Locks = base::Presences::Locks;
    const bool is_trusted = promise.grade != Grade::c;
    if (sessions == Bonds::Sessions::on && !is_trusted)
        return fail(
            Errc::store_unsafe,
            fmt::format("session=on is refused: on {} a process cannot be seen to be dead by its locks on files",
                        promise.file_system));
    return base::Presences(folder, is_trusted ? Locks::seen_by_all : Locks::not_trusted);
}

}  // namespace holdfast::stores
