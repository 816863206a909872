#include "stores/redis/codec.hpp"

#include "stores/common/sealed.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores::redis {
namespace {

// Positions in an answer.
constexpr std::size_t mark_place = 3;
constexpr std::size_t locks_begin = 4;

std::uint64_t milliseconds_of(Instant instant) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(instant.time_since_epoch().count(), 0));
}

Instant instant_of(std::uint64_t milliseconds) {
    return Instant{std::chrono::milliseconds{static_cast<std::int64_t>(milliseconds)}};
}

std::string_view text_of(const base::Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void add(Command& command, const std::optional<Instant>& instant) {
    if (instant)
        command.add(milliseconds_of(*instant));
    else
        command.add("");
}

/// The random beginning of a value, before the record. It changes with every ticket that is added or removed, which
/// changes nothing else in the value. Not a counter: after a restored backup the same number would come again, for
/// another record.
constexpr std::size_t version_size = 8;

/// One version is enough for all locks of a call.
std::string fresh_version() {
    const LockId id = LockId::random();
    return {reinterpret_cast<const char*>(id.bytes().data()), version_size};
}

/// The place of each change among the locks; both are in order.
class Places {
public:
    explicit Places(std::span<const Wanted> wanted) : wanted_(wanted) {}
    [[nodiscard]] std::size_t of(const Change& change) {
        while (wanted_[at_].name != change.name) ++at_;
        return at_;
    }

private:
    std::span<const Wanted> wanted_;
    std::size_t at_ = 0;
};

bool touches_queue(const Change& change, const Sight& sight) {
    return sight.has_queue || !change.put.empty() || !change.dropped.empty() || change.next || change.lost_lease;
}

/// The flags of a change for the script, beside the values to write.
std::string outline_of(const Change& change, const Sight& sight) {
    const bool is_held = change.record && change.record->held.has_value();
    std::string outline;
    for (const bool is :
         {change.record && sight.was_held && !is_held, !sight.was_held && is_held, change.is_new && change.record,
          change.record.has_value(), touches_queue(change, sight), change.clears_queue})
        outline += is ? '1' : '0';
    outline += std::to_string(change.events.size());
    // Counted from the newest event, whose number is in the record, so that the right events stay even if the list was
    // shortened by hand. A cut always comes with its own audit event.
    if (change.cut) outline.append(" ").append(std::to_string(change.events.front().seq - 1 - change.cut->through));
    return outline;
}

std::string to_read(const Wanted& lock) {
    std::string words = std::to_string(lock.depth);
    for (const LockId& ticket : lock.own_tickets) words.append(" ").append(ticket.text());
    return words;
}

void add_queue(Command& out, const Keys& keys, const Change& change, const Sight& sight, Instant now) {
    out.add(change.dropped.size());
    for (const kernel::Ticket& ticket : change.dropped) out.add(ticket.lock_id.text());
    out.add(change.put.size());
    for (const kernel::Ticket& ticket : change.put) {
        out.add(ticket.lock_id.text());
        out.add(ticket.number);
        out.add(milliseconds_of(ticket.expires_at));
        out.add(text_of(sealed(ticket, now)));
    }
    add(out, sight.has_queue ? std::optional(now) : std::nullopt);
    out.add(change.next ? keys.turn(*change.next) : "");
    out.add(change.lost_lease ? keys.turn(*change.lost_lease) : "");
}

std::unexpected<Error> lost(std::string message) {
    return std::unexpected(
        Error{.code = Errc::store_unavailable, .message = std::move(message), .store_is_lost = true});
}

constexpr int words_of_change = 4;

/// Values beyond the fixed words of each lock go into `more`.
void add_change(Command& out, Command& more, const Keys& keys, const Change& change, const std::string& value,
                const Sight& sight, Instant now) {
    out.add(outline_of(change, sight));
    out.add(value);
    add(out, change.record ? std::optional(change.record->changed_at) : std::nullopt);
    if (change.events.empty()) out.add("");
    for (const AuditEvent& event : change.events)
        (&event == &change.events.front() ? out : more).add(text_of(sealed(event)));
    if (touches_queue(change, sight)) add_queue(more, keys, change, sight, now);
}

}  // namespace

std::vector<std::string> values_after(std::span<const Wanted> wanted, std::span<const Sight> sights,
                                      std::span<const Change> changes, Instant now) {
    std::vector<std::string> values;
    values.reserve(changes.size());
    const std::string version = fresh_version();
    Places places(wanted);
    for (const Change& change : changes) {
        const std::string& before = sights[places.of(change)].value;
        std::string& value = values.emplace_back(version);
        // A lock that was never held can have waiters, because of locks that exclude it.
        if (change.record || before.empty())
            value += text_of(sealed(change.record.value_or(kernel::blank(change.name)), now));
        else
            value.append(before, version_size);
    }
    return values;
}

ScriptCall call_for(const Keys& keys, const Terms& terms, std::span<const Wanted> wanted, const PlannedWrite& planned) {
    ScriptCall call;
    for (const std::string& key : {keys.store(), keys.names(), keys.held(), keys.changed()}) call.add_key(key);
    for (const Wanted& lock : wanted) call.add_key(keys.lock(lock.name));
    for (const Wanted& lock : wanted) call.add_key(keys.audit(lock.name));
    Command& out = call.arguments;
    out.add(terms.known ? terms.known->text() : "");
    out.add(terms.proposed ? terms.proposed->text() : "");
    add(out, terms.judged);
    add(out, terms.window ? std::optional(terms.window->earliest) : std::nullopt);
    add(out, terms.window ? std::optional(terms.window->latest) : std::nullopt);
    out.add(wanted.size());
    auto change = planned.changes.begin();
    auto value = planned.values.begin();
    Command more;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const bool is_changed = change != planned.changes.end() && change->name == wanted[i].name;
        out.add(wanted[i].name.text());
        out.add(planned.sights.empty() ? "" : std::string_view(planned.sights[i].value));
        out.add(to_read(wanted[i]));
        if (is_changed)
            add_change(out, more, keys, *change++, *value++, planned.sights[i], planned.now);
        else
            for (int word = 0; word < words_of_change; ++word) out.add("");
    }
    out.append(more);
    return call;
}

Result<Outline> outline_of(Value answer, const Address& address) {
    const std::string_view kind = answer[0].text();
    if (kind == "gone")
        return lost(
            fmt::format("the store in Redis at {} is gone; nothing was changed, and nobody can say who holds "
                        "what. Restore it, or start everything that uses it again",
                        address.place()));
    if (kind == "other")
        return lost(
            fmt::format("the store in Redis at {} was replaced by another one; nothing was changed. Start "
                        "everything that uses it again",
                        address.place()));
    if (kind == "format")
        return fail(Errc::format_unsupported,
                    fmt::format("the store in Redis at {} has the format {}, and this version knows 1 and 2",
                                address.place(), answer[1].text().substr(0, 20)));
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
    outline.was_used = outline.kind == Outline::Kind::seen && !answer[mark_place].text().empty();
    return outline;
}

Result<LockView> view_of(Value answer, std::size_t index, const LockName& name, Instant now, Sight& sight) {
    const Value found = answer[locks_begin + index];
    const auto waiters = found[1].number();
    const auto last_number = found[2].number();
    sight = {.value = std::string(any_value)};
    if (!waiters || !last_number) return std::unexpected(unreadable(name, "the record"));
    LockView view{.record = kernel::blank(name)};
    view.waiters = *waiters;
    view.last_number = *last_number;
    if (!found[0].is_nil()) {
        const auto value = found[0].bytes();
        auto record = unsealed_record(value.subspan(std::min(version_size, value.size())), name, now);
        if (!record) return std::unexpected(record.error());
        view.record = std::move(record->value);
        view.moved = record->moved;
    }
    for (std::size_t i = 0; i < found[3].size(); ++i) {
        auto ticket = unsealed_ticket(found[3][i].bytes(), name, now);
        if (!ticket) return std::unexpected(ticket.error());
        if (ticket->moved) view.moved_tickets.push_back(ticket->value.lock_id);
        view.tickets.push_back(std::move(ticket->value));
    }
    sight.value = found[0].text();
    sight.was_held = view.record.held.has_value();
    sight.has_queue = *last_number > 0;
    return view;
}

Traces traces_of(Value answer, std::size_t index, Sight& sight) {
    const Value found = answer[locks_begin + index];
    Traces traces;
    // It is not known whether the lock was held. Removing it from an index that does not contain it does no harm.
    sight = {.value = std::string(lost_value), .was_held = true, .has_queue = true};
    if (!found[0].is_nil()) {
        sight.value = found[0].text();
        const auto value = found[0].bytes();
        const auto record = value.subspan(std::min(version_size, value.size()));
        traces.record.emplace(record.begin(), record.end());
    }
    for (std::size_t i = 0; i < found[3].size(); ++i) {
        const auto ticket = found[3][i].bytes();
        traces.tickets.emplace_back(ticket.begin(), ticket.end());
    }
    return traces;
}

}  // namespace holdfast::stores::redis
