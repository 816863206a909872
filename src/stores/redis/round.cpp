#include "stores/redis/round.hpp"

#include "stores/batch/sealed.hpp"
#include "values/hex.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores::redis {
namespace {

constexpr std::size_t locks_begin = 3;  ///< In an answer.

std::uint64_t milliseconds_of(Instant instant) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(instant.time_since_epoch().count(), 0));
}

Instant instant_of(std::uint64_t milliseconds) {
    return Instant{std::chrono::milliseconds{static_cast<std::int64_t>(milliseconds)}};
}

void add(Command& command, const base::Bytes& bytes) {
    command.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void add(Command& command, const std::optional<Instant>& instant) {
    if (instant)
        command.add(milliseconds_of(*instant));
    else
        command.add("");
}

/// Not a count: after a restored backup the same count would come again, for another record.
std::string fresh_version() { return to_hex(std::span(LockId::random().bytes()).first(8)); }

std::string_view held_after(const Change& change, const Sight& sight) {
    if (!change.record || change.record->held.has_value() == sight.was_held) return "";
    return change.record->held ? "1" : "0";
}

}  // namespace

ScriptCall call_for(const Keys& keys, const Terms& terms, std::span<const Wanted> wanted,
                    std::span<const Sight> sights) {
    ScriptCall call;
    for (const std::string& key : {keys.store(), keys.names(), keys.held(), keys.changed()}) call.add_key(key);
    Command& out = call.arguments;
    out.add(terms.known ? terms.known->text() : "");
    out.add(terms.proposed ? terms.proposed->text() : "");
    add(out, terms.judged);
    add(out, terms.window ? std::optional(terms.window->earliest) : std::nullopt);
    add(out, terms.window ? std::optional(terms.window->latest) : std::nullopt);
    out.add(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const Wanted& lock = wanted[i];
        call.add_key(keys.lock(lock.name));
        call.add_key(keys.queue(lock.name));
        call.add_key(keys.alive(lock.name));
        call.add_key(keys.audit(lock.name));
        out.add(lock.name.text());
        out.add(i < sights.size() ? sights[i].version : "");
        add(out, i < sights.size() ? sights[i].record : base::Bytes{});
        out.add(lock.depth);
        out.add(lock.own_tickets.size());
        for (const LockId& ticket : lock.own_tickets) out.add(ticket.text());
    }
    return call;
}

void add_nothing(ScriptCall& call) { call.arguments.add(0U); }

std::vector<Written> add_changes(ScriptCall& call, const Keys& keys, std::span<const Wanted> wanted,
                                 std::span<const Sight> sights, std::span<const Change> changes, Instant now) {
    std::vector<Written> all;
    all.reserve(changes.size());
    Command& out = call.arguments;
    out.add(changes.size());
    for (const Change& change : changes) {
        const auto at = std::ranges::lower_bound(wanted, change.name, {}, &Wanted::name) - wanted.begin();
        const Sight& sight = sights[static_cast<std::size_t>(at)];
        out.add(static_cast<std::uint64_t>(at + 1));
        Written& written = all.emplace_back(fresh_version());
        if (change.record) written.record = sealed(*change.record, now);
        out.add(written.version);
        add(out, written.record);
        out.add(change.is_new && change.record ? "1" : "");
        out.add(held_after(change, sight));
        add(out, change.record ? std::optional(change.record->changed_at) : std::nullopt);
        out.add(change.events.size());
        for (const AuditEvent& event : change.events) add(out, sealed(event));
        out.add(change.dropped.size());
        for (const kernel::Ticket& ticket : change.dropped) out.add(ticket.lock_id.text());
        out.add(change.put.size());
        for (const kernel::Ticket& ticket : change.put) {
            out.add(ticket.lock_id.text());
            out.add(ticket.number);
            out.add(milliseconds_of(ticket.expires_at));
            add(out, sealed(ticket, now));
        }
        add(out, sight.has_queue ? std::optional(now) : std::nullopt);
        out.add(change.next ? keys.turn(*change.next) : "");
    }
    return all;
}

Result<Outline> outline_of(Value answer, const Address& address) {
    const std::string_view kind = answer[0].text();
    if (kind == "gone")
        return fail(Errc::store_unavailable,
                    fmt::format("the store in Redis at {} is gone; nothing was changed, and nobody can say who holds "
                                "what. Restore it, or start everything that uses it again",
                                address.place()));
    if (kind == "other")
        return fail(Errc::store_unavailable,
                    fmt::format("the store in Redis at {} was replaced by another one; nothing was changed. Start "
                                "everything that uses it again",
                                address.place()));
    if (kind == "format")
        return fail(Errc::format_unsupported,
                    fmt::format("the store in Redis at {} has the format {}, and this version knows 1", address.place(),
                                answer[1].text().substr(0, 20)));
    Outline outline;
    const auto time = answer[kind == "none" ? 1 : 2].number();
    if (time) outline.time = instant_of(*time);
    if (time && kind == "none") return outline;
    outline.kind = kind == "done" ? Outline::Kind::done : Outline::Kind::seen;
    const auto store_id = StoreId::parse(answer[1].text());
    if (!time || !store_id || (kind != "done" && kind != "seen"))
        return fail(Errc::format_unsupported,
                    fmt::format("what is in Redis at {} is no store of ours", address.place()));
    outline.store_id = *store_id;
    return outline;
}

Result<LockView> view_of(Value answer, std::size_t index, const LockName& name, Instant now, Sight& sight) {
    const Value found = answer[locks_begin + index];
    const auto waiters = found[2].number();
    const auto last_number = found[3].number();
    sight = {.version = std::string(any_version)};
    if (!waiters || !last_number) return std::unexpected(unreadable(name, "the record"));
    LockView view{.record = kernel::blank(name)};
    view.waiters = *waiters;
    view.last_number = *last_number;
    if (!found[1].is_nil()) {
        auto record = unsealed_record(found[1].bytes(), name, now);
        if (!record) return std::unexpected(record.error());
        view.record = std::move(record->value);
        view.moved = record->moved;
    }
    for (std::size_t i = 0; i < found[4].size(); ++i) {
        auto ticket = unsealed_ticket(found[4][i].bytes(), name, now);
        if (!ticket) return std::unexpected(ticket.error());
        if (ticket->moved) view.moved_tickets.push_back(ticket->value.lock_id);
        view.tickets.push_back(std::move(ticket->value));
    }
    sight.version = found[0].text();
    sight.was_held = view.record.held.has_value();
    sight.has_queue = *last_number > 0;
    return view;
}

}  // namespace holdfast::stores::redis
