#include "json/event.hpp"

#include "json/fields.hpp"
#include "values/hex.hpp"

#include <fmt/format.h>

namespace holdfast::json {
namespace {

std::optional<EventKind> kind_named(std::string_view text) {
    for (std::uint8_t number = 1; number <= static_cast<std::uint8_t>(newest_event_kind); ++number)
        if (const auto kind = static_cast<EventKind>(number); name_of(kind) == text) return kind;
    return std::nullopt;
}

}  // namespace

Object event(const AuditEvent& event) {
    Object object;
    object.set("seq", Value::number(event.seq))
        .set("at", Value::time(event.at))
        .set("name", Value::text(event.name.text()))
        .set("event", Value::text(name_of(event.kind)))
        .set("token", Value::number(event.token.value))
        .set("lock_id", Value::text(event.lock_id.text()))
        .set("holder", Value::text_or_null(event.holder.text))
        .set("user", Value::text_or_null(event.holder.user))
        .set("actor", Value::text_or_null(event.actor))
        .set("reason", Value::text_or_null(event.reason))
        .set("details", Value::texts(event.details))
        .set("prev_hash", Value::text(to_hex(event.prev_hash)))
        .set("hash", Value::text(to_hex(event.hash)));
    return object;
}

Object events(const std::vector<AuditEvent>& events) {
    std::vector<Value> items;
    for (const AuditEvent& each : events) items.push_back(event(each).done());
    return Object().set("events", Value::array(items));
}

Result<AuditEvent> read_event(const Node& node, const std::string& where) {
    Fields in(node, where);
    const auto name = in.parsed<LockName>("name");
    const auto kind = kind_named(in.text("event"));
    if (!kind) in.refuse("event", "is not an event that this version knows");
    const std::uint64_t seq = in.number("seq");
    const Instant at = in.time("at");
    const FencingToken token = in.token("token");
    const auto lock_id = in.parsed<LockId>("lock_id");
    Holder holder{in.text_or_empty("holder"), in.text_or_empty("user")};
    std::string actor = in.text_or_empty("actor");
    std::string reason = in.text_or_empty("reason");
    auto details = in.texts("details");
    const Digest prev_hash = in.digest("prev_hash");
    const Digest hash = in.digest("hash");
    if (in.error()) return std::unexpected(*in.error());
    return AuditEvent{*name,
                      seq,
                      at,
                      *kind,
                      token,
                      *lock_id,
                      std::move(holder),
                      std::move(actor),
                      std::move(reason),
                      std::move(details),
                      prev_hash,
                      hash};
}

Result<std::vector<AuditEvent>> read_events(const Node& node) {
    Fields in(node);
    std::vector<AuditEvent> events;
    for (const Node& item : in.array("events")) {
        auto each = read_event(item, fmt::format("events[{}]", events.size()));
        if (!each) return std::unexpected(each.error());
        events.push_back(std::move(*each));
    }
    if (in.error()) return std::unexpected(*in.error());
    return events;
}

Object event_page(const EventPage& page) {
    return events(page.events)
        .set("cursor", Value::text(page.next.text))
        .set("is_last", Value::boolean(page.is_last))
        .set("unsettled_since", page.unsettled_since ? Value::time(*page.unsettled_since) : Value());
}

Result<EventPage> read_event_page(const Node& node) {
    auto events = read_events(node);
    if (!events) return std::unexpected(events.error());
    Fields in(node);
    EventPage page{.events = std::move(*events), .next = {in.text("cursor")}};
    page.is_last = in.is_true("is_last");
    page.unsettled_since = in.time_if("unsettled_since");
    if (page.next.text.size() > EventCursor::longest) in.refuse("cursor", "is too long");
    if (in.error()) return std::unexpected(*in.error());
    return page;
}

Object verified(std::uint64_t events, std::uint64_t locks) {
    return Object().set("verified", Value::number(events)).set("locks", Value::number(locks));
}

Object pruned(std::uint64_t events, std::uint64_t locks, bool dry_run) {
    return Object()
        .set("pruned", Value::number(events))
        .set("locks", Value::number(locks))
        .set("dry_run", Value::boolean(dry_run));
}

}  // namespace holdfast::json
