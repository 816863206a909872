#include "stores/file/audit_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <unistd.h>

namespace holdfast::stores::file {
namespace {

/// How many events a part has. More make pruning slower, which copies a part; fewer make more files.
constexpr std::uint64_t most_in_part = 1024;

/// Far more than so many events can take.
constexpr std::size_t longest_part = std::size_t{64} << 20;

constexpr std::string_view name_begin = "audit.";

std::string name_of_part(std::uint64_t first) { return fmt::format("{}{}", name_begin, first); }

/// The first event of the part with this file name; empty if it is no part.
std::optional<std::uint64_t> first_of_part(std::string_view name) {
    if (!name.starts_with(name_begin)) return std::nullopt;
    const std::string_view digits = name.substr(name_begin.size());
    std::uint64_t first = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), first);
    const bool is_number = error == std::errc{} && end == digits.data() + digits.size() && first > 0;
    return is_number ? std::optional(first) : std::nullopt;
}

/// The first event of the part of `seq`, if none of it is pruned.
std::uint64_t begin_of(std::uint64_t seq) { return seq - (seq - 1) % most_in_part; }

/// The events `first` to `last`, which are in the log and not pruned.
struct Part {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};

std::uint64_t last_moved(const SavedLock& saved) { return saved.tail.front().seq - 1; }

Part part_of(const SavedLock& saved, std::uint64_t seq) {
    const std::uint64_t begin = begin_of(seq);
    return {std::max(begin, saved.record.pruned_seq + 1), std::min(begin + most_in_part - 1, last_moved(saved))};
}

Result<std::vector<AuditEvent>> read_part(const Folder& folder, const SavedLock& saved, const Part& part) {
    const std::string name = name_of_part(part.first);
    const auto broken = [&](std::string_view what) {
        return fail(Errc::audit_chain_broken, fmt::format("{} {}", folder.path_of(name), what));
    };
    // Only the newest part can be followed by bytes that do not count.
    const bool is_newest = part.last == last_moved(saved);
    const auto bytes = folder.read(name, is_newest ? static_cast<std::size_t>(saved.audit_bytes) : longest_part);
    if (!bytes) return std::unexpected(bytes.error());
    if (!*bytes) return broken("is missing");
    if (is_newest && (*bytes)->size() < saved.audit_bytes) return broken("was cut");
    auto events = events_in(**bytes, saved.record.name, part.first);
    if (!events) return broken("cannot be read: it was altered");
    if (events->size() != part.last - part.first + 1) return broken("does not lead to the lock's record");
    return std::move(*events);
}

/// The rest of the part in which pruning up to `through` ends; empty if all of the part stays, or nothing.
Result<std::vector<AuditEvent>> rest_of_part(const Folder& folder, const SavedLock& saved, std::uint64_t through) {
    const Part part = part_of(saved, through + 1);
    if (part.first > through || part.last <= through) return std::vector<AuditEvent>{};
    auto events = read_part(folder, saved, part);
    if (events) std::erase_if(*events, [&](const AuditEvent& event) { return event.seq <= through; });
    return events;
}

}  // namespace

Result<std::vector<AuditEvent>> read_events(const Folder& folder, const SavedLock& saved, const HistoryQuery& query) {
    const std::uint64_t after = std::max(query.after_seq, saved.record.pruned_seq);
    // From the end that the query asks for, and no further than needed.
    const bool backwards = query.limit && query.which == HistoryQuery::Which::newest;
    std::vector<AuditEvent> found;
    const auto is_full = [&] { return query.limit && found.size() >= *query.limit; };
    const auto take = [&](std::vector<AuditEvent> events) {
        if (backwards) std::ranges::reverse(events);
        for (AuditEvent& event : events)
            if (!is_full() && event.seq > after && (!query.since || event.at >= *query.since))
                found.push_back(std::move(event));
    };

    std::vector<Part> parts;
    for (std::uint64_t covered = after; covered < last_moved(saved); covered = parts.back().last)
        parts.push_back(part_of(saved, covered + 1));
    if (backwards) {
        take(saved.tail);
        std::ranges::reverse(parts);
    }
    for (const Part& part : parts) {
        if (is_full()) break;
        auto events = read_part(folder, saved, part);
        if (!events) return std::unexpected(events.error());
        take(std::move(*events));
    }
    if (backwards)
        std::ranges::reverse(found);
    else
        take(saved.tail);
    return found;
}

Result<void> move_tail(const Folder& folder, SavedLock& saved) {
    std::uint64_t end = saved.audit_bytes;
    bool has_new_part = false;
    for (std::span<const AuditEvent> rest = saved.tail; !rest.empty();) {
        const std::uint64_t begin = begin_of(rest.front().seq);
        if (rest.front().seq == begin) end = 0;
        has_new_part = has_new_part || end == 0;
        const auto some = rest.first(std::min<std::size_t>(rest.size(), begin + most_in_part - rest.front().seq));
        const Bytes bytes = to_audit(some);
        const std::string name = name_of_part(std::max(begin, saved.record.pruned_seq + 1));
        if (auto done = folder.write_end(name, end, bytes); !done) return done;
        end += bytes.size();
        rest = rest.subspan(some.size());
    }
    if (has_new_part)
        if (auto synced = folder.sync(); !synced) return synced;
    saved.audit_bytes = end;
    saved.tail.clear();
    return {};
}

Result<void> can_prune(const Folder& folder, const SavedLock& saved, std::uint64_t through) {
    if (saved.tail.empty()) return {};
    const auto rest = rest_of_part(folder, saved, through);
    return rest ? Result<void>{} : std::unexpected(rest.error());
}

Result<void> prune(const Folder& folder, SavedLock& saved, std::uint64_t through) {
    // A lock that is saved for the first time has nothing on disk.
    if (saved.tail.empty()) return {};
    const Part part = part_of(saved, through + 1);
    const bool begins_with_part = part.first == through + 1 && part.first <= part.last;
    if (!begins_with_part) {
        const auto rest = rest_of_part(folder, saved, through);
        if (!rest) return std::unexpected(rest.error());
        // Made also if nothing is left of the log: the file shows that the lock was used, should its record ever be
        // missing.
        const Bytes bytes = to_audit(*rest);
        if (auto written = folder.write(name_of_part(through + 1), bytes); !written) return written;
        if (auto synced = folder.sync(); !synced) return synced;
        if (part.last >= last_moved(saved)) saved.audit_bytes = bytes.size();
    }
    saved.record.pruned_seq = through;
    std::erase_if(saved.tail, [&](const AuditEvent& event) { return event.seq <= through; });
    return {};
}

void remove_unused_parts(const Folder& folder, std::uint64_t pruned_seq) {
    const auto entries = folder.entries();
    if (!entries) return;
    for (const std::string& entry : *entries) {
        const auto first = first_of_part(entry);
        if (!first) continue;
        const bool counts = *first == pruned_seq + 1 || (*first > pruned_seq && *first == begin_of(*first));
        if (!counts) unlinkat(folder.fd(), entry.c_str(), 0);
    }
}

Result<LogLeft> read_what_is_left(const Folder& folder, const LockName& name) {
    const auto entries = folder.entries();
    if (!entries) return std::unexpected(entries.error());
    std::vector<std::uint64_t> parts;
    for (const std::string& entry : *entries)
        if (const auto first = first_of_part(entry)) parts.push_back(*first);
    std::ranges::sort(parts);
    LogLeft left;
    for (const std::uint64_t first : parts) {
        const auto bytes = folder.read(name_of_part(first), longest_part);
        if (!bytes) return std::unexpected(bytes.error());
        if (!*bytes) continue;
        auto [events, size] = readable_events_in(**bytes, name, first);
        if (events.empty()) continue;
        // Behind a gap the log begins anew.
        if (!left.events.empty() && left.events.back().seq + 1 != first) left.events.clear();
        std::ranges::move(events, std::back_inserter(left.events));
        left.bytes_of_newest_part = size;
    }
    return left;
}

}  // namespace holdfast::stores::file
