#pragma once

#include "base/file_system.hpp"
#include "base/presence.hpp"
#include "kernel/step.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::stores {

/// Binds the tickets and leases of a store in files to the processes that own them, and ends those of dead processes.
/// One for each Store object.
///
/// A ticket is bound to the process that asked for it last. With `?session=on` a lease is, too; then the record stays
/// the authority, and a holder keeps its lease until somebody takes it.
///
/// May be used from any thread.
class Bonds {
public:
    enum class Sessions { off, on };

    Bonds(base::Presences all, Sessions sessions) : presence_(std::move(all)), sessions_(sessions) {}

    /// As `Store::serve_others`.
    void serve_others() { serves_others_ = true; }

    /// Called before the ticket is written. If this fails, the ticket lasts until it expires.
    void bind_ticket(const LockId& ticket);
    /// Called after the ticket was removed: a ticket without its link would last until it expires.
    void forget_ticket(const LockId& ticket) const { presence_.all().forget(ticket, base::Bond::ticket); }
    /// True only if the process that asked for it last is certainly dead.
    [[nodiscard]] bool is_abandoned(const LockId& ticket) const {
        return presence_.all().is_gone(ticket, base::Bond::ticket);
    }

    /// With sessions: binds what `decision` gives to the requester, before it is saved. Refused if a new lease cannot
    /// be bound; then nothing may be saved. Does nothing without sessions.
    [[nodiscard]] Result<void> bind_session(const Request& request, const kernel::Decision& decision);
    /// A lease whose process is dead counts as expired for all but its holder.
    void end_abandoned(const Request& request, Instant now, kernel::Record& record) const;
    /// The same for a look.
    void end_abandoned(Instant now, kernel::Record& record) const;
    /// The lease that ends when `before` is replaced by `after`.
    [[nodiscard]] static std::optional<LockId> ended_between(const kernel::Record& before, const kernel::Record& after);
    /// The file of the process with which `lease` ends; empty if there is none.
    [[nodiscard]] std::optional<std::string> process_of(const LockId& lease) const {
        return presence_.all().find(lease, base::Bond::session);
    }
    /// Called after the end of the lease was saved.
    void forget_lease(const LockId& lease) const { presence_.all().forget(lease, base::Bond::session); }

    /// As `Store::duplicate_session`.
    [[nodiscard]] std::optional<int> duplicate() const;

private:
    base::Presence presence_;
    const Sessions sessions_;
    std::atomic<bool> serves_others_{false};
};

/// The files in `folder`, unless `promise` says that locks on files cannot be trusted there. Refused with
/// `store_unsafe` if there sessions are asked for.
[[nodiscard]] Result<base::Presences> presences_in(const std::string& folder, const base::Promise& promise,
                                                   Bonds::Sessions sessions);

}  // namespace holdfast::stores
