#include "stores/common/optimistic.hpp"

#include "stores/common/sealed.hpp"

#include <algorithm>

namespace holdfast::stores {

bool is_predictable(const Request& request) {
    if (const auto* acquire = std::get_if<Acquire>(&request))
        return acquire->unless_held.empty() && !acquire->takes_over;
    return std::holds_alternative<Renew>(request) || std::holds_alternative<Release>(request);
}

bool is_settled(const kernel::Record& record, Instant now) {
    return record.changed_at <= now && (!record.held || record.held->lease.expires_at > now);
}

Instant not_before(const kernel::Record& record, Instant now) {
    const Instant event = record.changed_at;
    return event > now && event - now <= slewing ? event : now;
}

bool writes_every_record(std::span<const Reply> replies, const Batch& batch) {
    const auto writes_record = [](const Change& change) { return change.record && change.put.empty(); };
    return std::ranges::all_of(replies, &Reply::has_value) && batch.changes().size() == batch.wanted().size() &&
           std::ranges::all_of(batch.changes(), writes_record);
}

}  // namespace holdfast::stores
