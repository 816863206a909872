#include "client/loss.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::client {
namespace {

std::string who(const Holder& holder) { return printable(holder.display()); }

std::string because(const std::string& reason) {
    return reason.empty() ? "" : fmt::format(" (\"{}\")", printable(reason));
}

}  // namespace

bool is_at_limit(const Lease& lease) { return lease.max_until && lease.expires_at >= *lease.max_until; }

Error reason_of_expiry(const RenewalRecord& record, Instant now) {
    const Lease& lease = record.lease;
    const std::string& name = record.name.text();
    if (is_at_limit(lease))
        return {Errc::lock_expired, fmt::format("{} was held as long as max_hold allows, which is {}", name,
                                                to_words(*lease.max_until - lease.acquired_at))};
    if (!record.renews)
        return {Errc::lock_expired,
                fmt::format("the lease on {} is not renewed (renew = false), and its ttl of {} is over", name,
                            to_words(lease.expires_at - lease.renewed_at))};
    const std::string failure = record.last_failure
                                    ? fmt::format("; the last try: {}: {}", row_of(record.last_failure->code).name,
                                                  record.last_failure->message)
                                    : "";
    return {Errc::lock_expired, fmt::format("the lease on {} could not be renewed in time, last renewed {}{}", name,
                                            clock_time(lease.renewed_at, now), failure)};
}

std::optional<Error> loss_told_by(const LockName& name, Error refusal) {
    if (refusal.store_is_lost)
        return Error{Errc::lock_not_held,
                     fmt::format("the store knows nothing of the lease on {}: {}", name.text(), refusal.message)};
    // Another token is there, or was: for the holder the same as another lease.
    if (refusal.code == Errc::fencing_mismatch) refusal.code = Errc::lock_not_held;
    if (refusal.code == Errc::lock_expired || refusal.code == Errc::lock_not_held) return refusal;
    return std::nullopt;
}

std::optional<Explanation> explain_loss(const LockName& name, const LockId& lock_id,
                                        const std::vector<AuditEvent>& events, Instant now) {
    const std::string& lock = name.text();
    for (const AuditEvent& event : events) {
        const std::string at = clock_time(event.at, now);
        switch (event.kind) {
            case EventKind::stolen:
                if (const auto stale = event.details.find("stale_since"); stale != event.details.end())
                    return Explanation{
                        HoldEventKind::stolen,
                        fmt::format("the lease on {} was last renewed at {}, and {} took it over at {}{}", lock,
                                    printable(stale->second), who(event.holder), at, because(event.reason))};
                return Explanation{HoldEventKind::stolen, fmt::format("the lease on {} had run out, and {} took it {}",
                                                                      lock, who(event.holder), at)};
            case EventKind::broken:
                return Explanation{HoldEventKind::broken,
                                   fmt::format("{} was taken away by {} at {}{}", lock, printable(event.actor), at,
                                               because(event.reason))};
            case EventKind::transferred:
                return Explanation{HoldEventKind::transferred,
                                   fmt::format("{} was handed over to {} at {}{}", lock, who(event.holder), at,
                                               because(event.reason))};
            case EventKind::override_approved:
                return Explanation{HoldEventKind::transferred,
                                   fmt::format("{} was given to {} at {}, as {} approved{}", lock, who(event.holder),
                                               at, printable(event.actor), because(event.reason))};
            case EventKind::expired:
                if (event.lock_id != lock_id) break;
                return Explanation{HoldEventKind::expired,
                                   fmt::format("the lease on {} had run out, which was announced at {}", lock, at)};
            case EventKind::released:
                if (event.lock_id != lock_id) break;
                return Explanation{HoldEventKind::expired,
                                   fmt::format("{} was released at {} by somebody else who has its lease", lock, at)};
            default: break;
        }
    }
    return std::nullopt;
}

}  // namespace holdfast::client
