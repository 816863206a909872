#include "stores/etcd/keys.hpp"

#include "stores/common/query.hpp"
#include "values/hex.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace holdfast::stores::etcd {
namespace {

constexpr char separator = '\0';

KeyRange beginning_with(std::string prefix) {
    std::string end = end_of_prefix(prefix);
    return {std::move(prefix), std::move(end)};
}

}  // namespace

std::string digits_of(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::optional<std::uint64_t> number_in(std::string_view digits) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number, 16);
    if (error != std::errc{} || end != digits.end()) return std::nullopt;
    return number;
}

KeyRange Keys::records(std::string_view name_prefix, std::string_view after) const {
    KeyRange range = beginning_with(fmt::format("{}l/{}", base_, name_prefix));
    if (!after.empty()) range.begin = std::max(range.begin, fmt::format("{}l/{}{}", base_, after, separator));
    return range;
}

std::optional<std::string> Keys::name_in_record(std::string_view key) const {
    const std::string before = base_ + "l/";
    if (!key.starts_with(before)) return std::nullopt;
    return std::string(key.substr(before.size()));
}

std::string Keys::ticket(const LockName& name, std::uint64_t number) const {
    return tickets(name).begin + digits_of(number);
}

KeyRange Keys::tickets(const LockName& name) const { return beginning_with(base_ + "q/" + name.text() + separator); }

KeyRange Keys::tickets_between(const LockName& first, const LockName& last) const {
    return {tickets(first).begin, tickets(last).end};
}

std::optional<std::string> Keys::name_in_ticket(std::string_view key) const {
    const std::string before = base_ + "q/";
    const auto end = key.find(separator);
    if (!key.starts_with(before) || end == std::string_view::npos) return std::nullopt;
    return std::string(key.substr(before.size(), end - before.size()));
}

std::string Keys::ticket_index(const LockName& name, const LockId& lock_id) const {
    return base_ + "t/" + name.text() + separator + to_hex(lock_id.bytes());
}

KeyRange Keys::ticket_indexes(const LockName& name) const {
    return beginning_with(base_ + "t/" + name.text() + separator);
}

std::string Keys::event(const LockName& name, std::uint64_t seq) const {
    return base_ + "a/" + name.text() + separator + digits_of(seq);
}

KeyRange Keys::events(const LockName& name, std::uint64_t after_seq) const {
    KeyRange range = beginning_with(base_ + "a/" + name.text() + separator);
    // The end is right after the event's own key, since the highest number has no successor.
    if (after_seq > 0) range.begin = event(name, after_seq) + separator;
    return range;
}

KeyRange Keys::events_through(const LockName& name, std::uint64_t after_seq, std::uint64_t through) const {
    return {event(name, after_seq) + separator, event(name, through) + separator};
}

KeyRange Keys::all_events() const { return beginning_with(base_ + "a/"); }

}  // namespace holdfast::stores::etcd
