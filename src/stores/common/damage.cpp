#include "stores/common/damage.hpp"

#include "stores/common/sealed.hpp"

#include <algorithm>

namespace holdfast::stores {
namespace {

std::optional<AuditEvent> event_in(const std::optional<base::Bytes>& bytes, const LockName& name) {
    if (!bytes) return std::nullopt;
    auto event = unsealed_event(*bytes);
    if (!event || event->name != name) return std::nullopt;
    return std::move(*event);
}

}  // namespace

kernel::Damage damage_in(const Traces& traces, const LockName& name, bool is_record_sound, Instant now) {
    kernel::Damage damage{.what = traces.record ? "the record" : "the record, which is missing",
                          .bytes = traces.record.value_or(base::Bytes{}),
                          .token = traces.token,
                          .seq = traces.seq};
    const auto newest = event_in(traces.newest, name);
    if (newest) damage.saw_newest(*newest);
    const auto oldest = event_in(traces.oldest, name);
    if (oldest) damage.saw_oldest(*oldest);
    // A log of which nothing can be read begins anew.
    if (!newest && !oldest) damage.pruned_seq = damage.seq;
    if (!traces.record) return damage;
    const auto record = unsealed_record(*traces.record, name, now);
    if (record) damage.token = std::max(damage.token, record->value.token);
    if (!record || !is_record_sound) return damage;
    damage.what = "the queue";
    damage.bytes.clear();
    damage.record = record->value;
    const auto bad = std::ranges::find_if(
        traces.tickets, [&](const base::Bytes& ticket) { return !unsealed_ticket(ticket, name, now); });
    if (bad != traces.tickets.end()) damage.bytes = *bad;
    return damage;
}

}  // namespace holdfast::stores
