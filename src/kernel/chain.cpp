#include "holdfast/audit.hpp"
#include "kernel/codec.hpp"

#include <fmt/format.h>

namespace holdfast {

Result<void> verify_chain(const std::vector<AuditEvent>& events, const LockStatus& status) {
    const auto broken = [&](std::uint64_t seq, std::string_view why) {
        return fail(Errc::audit_chain_broken,
                    fmt::format("the audit log of {} is broken at event {}: {}", status.name.text(), seq, why));
    };
    const AuditEvent* previous = nullptr;
    for (const AuditEvent& event : events) {
        if (event.name != status.name) return broken(event.seq, "it belongs to another lock");
        if (event.hash != kernel::hash_of(event)) return broken(event.seq, "its content does not match its hash");
        if (event.seq != (previous == nullptr ? status.pruned_seq : previous->seq) + 1)
            return broken(event.seq, "events are missing before it");
        const bool is_after_pruned = previous == nullptr && status.pruned_seq > 0;
        if (!is_after_pruned && event.prev_hash != (previous == nullptr ? Digest{} : previous->hash))
            return broken(event.seq, "it does not follow from the event before");
        previous = &event;
    }
    const std::uint64_t last = previous == nullptr ? 0 : previous->seq;
    if (last != status.seq) return broken(status.seq, fmt::format("the log ends at {}", last));
    if (previous != nullptr && previous->hash != status.chain)
        return broken(last, "it is not what the lock's record says");
    return {};
}

}  // namespace holdfast
