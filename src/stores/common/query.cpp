#include "stores/common/query.hpp"

#include <algorithm>
#include <tuple>

namespace holdfast::stores {

bool is_selected(const ListQuery& query, const kernel::Record& record) {
    if (!record.name.text().starts_with(query.prefix) || record.name.text() <= query.after) return false;
    if (!query.with_free && !record.held) return false;
    return !query.changed_since || record.changed_at >= *query.changed_since;
}

std::string end_of_prefix(std::string prefix) {
    while (prefix.ends_with('\xff')) prefix.pop_back();
    // Names have at most 255 bytes.
    if (prefix.empty()) return std::string(256, '\xff');
    ++prefix.back();
    return prefix;
}

void sort_by_time(std::vector<AuditEvent>& events) {
    std::ranges::sort(events, {}, [](const AuditEvent& e) { return std::tie(e.at, e.name, e.seq); });
}

void cut_to_limit(std::vector<AuditEvent>& events, const HistoryQuery& query) {
    if (!query.limit || events.size() <= *query.limit) return;
    const auto surplus = static_cast<std::ptrdiff_t>(events.size() - *query.limit);
    const auto from = query.which == HistoryQuery::Which::newest ? events.begin() : events.end() - surplus;
    events.erase(from, from + surplus);
}

}  // namespace holdfast::stores
