#include "stores/sqlite/rows.hpp"

#include "base/crc32c.hpp"
#include "kernel/codec.hpp"
#include "stores/sqlite/json_map.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::stores::sqlite {
namespace {

using kernel::ClockMark;
using kernel::Ending;
using kernel::Record;
using kernel::Ticket;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, 4> ending_names{"released", "stolen", "broken", "transferred"};

constexpr int lease_columns = 13;
constexpr int ended_columns = 3;
constexpr int ask_columns = 8;

// What a column holds. Each reader spoils the row where the column holds anything else.

LockId lock_id(Query& row) {
    const auto parsed = LockId::parse(row.text());
    if (!parsed) row.spoil();
    return parsed ? *parsed : LockId{};
}

Digest digest(Query& row) {
    Digest value{};
    const auto bytes = row.blob();
    if (bytes.size() == value.size())
        std::ranges::copy(bytes, value.begin());
    else
        row.spoil();
    return value;
}

std::map<std::string, std::string> map(Query& row) {
    auto parsed = from_json(row.text());
    if (!parsed) row.spoil();
    return parsed ? std::move(*parsed) : std::map<std::string, std::string>{};
}

std::uint64_t count(Query& row) {
    const std::int64_t value = row.number();
    if (value < 0) row.spoil();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

/// The next grant must have room for a token, too.
FencingToken token(Query& row) {
    const FencingToken value{count(row)};
    if (value.value >= FencingToken::limit - 1) row.spoil();
    return value;
}

/// Deadlines are added to, so what no clock shows is not let in.
std::int64_t bounded(Query& row) {
    constexpr std::int64_t limit = std::int64_t{1} << 60;
    const std::int64_t value = row.number();
    if (value < -limit || value > limit) row.spoil();
    return std::clamp(value, -limit, limit);
}

milliseconds span(Query& row) { return milliseconds{bounded(row)}; }
Instant instant(Query& row) { return Instant{span(row)}; }

Holder holder(Query& row) {
    std::string text(row.text());
    return {std::move(text), std::string(row.text())};
}

ClockMark mark(Query& row) {
    std::string boot_id(row.text());
    return {std::move(boot_id), span(row)};
}

template <class Enum>
Enum choice(Query& row, std::span<const std::string_view> names) {
    const auto found = std::ranges::find(names, row.text());
    if (found == names.end()) row.spoil();
    const auto index = found == names.end() ? 0 : found - names.begin();
    return static_cast<Enum>(index + 1);
}

std::span<const std::string_view> event_names() {
    static const auto names = [] {
        std::array<std::string_view, static_cast<std::size_t>(EventKind::override_denied)> all{};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = name_of(static_cast<EventKind>(i + 1));
        return all;
    }();
    return names;
}

std::int64_t number_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::int64_t number_of(Instant value) { return value.time_since_epoch().count(); }

void bind_mark(Query& query, const ClockMark& saved) { query.bind(saved.boot_id).bind(saved.offset.count()); }

void bind_nulls(Query& query, int columns) {
    for (int i = 0; i < columns; ++i) query.bind_null();
}

std::int64_t checksum(kernel::Bytes bytes, const LockName& name, const ClockMark& saved) {
    // A ticket does not name its lock, and must not pass for one of another.
    const std::string rest = fmt::format("{} {} {}", saved.offset.count(), saved.boot_id, name.text());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return base::crc32c(bytes);
}

kernel::HeldLease read_lease(Query& row, FencingToken current) {
    kernel::HeldLease held;
    Lease& lease = held.lease;
    lease.lock_id = lock_id(row);
    // A lease that is not over carries the newest token of its lock.
    lease.token = current;
    held.key_hash = {digest(row)};
    lease.holder = holder(row);
    lease.operation = row.text();
    lease.reason = row.text();
    lease.ttl = span(row);
    lease.acquired_at = instant(row);
    lease.renewed_at = instant(row);
    lease.renew_seq = count(row);
    lease.expires_at = instant(row);
    if (row.at_null())
        row.skip();
    else
        lease.max_until = instant(row);
    lease.meta = map(row);
    return held;
}

void bind_lease(Query& query, const kernel::HeldLease& held) {
    const Lease& lease = held.lease;
    query.bind(lease.lock_id.text()).bind(held.key_hash.digest).bind(lease.holder.text).bind(lease.holder.user);
    query.bind(lease.operation).bind(lease.reason).bind(lease.ttl.count());
    query.bind(number_of(lease.acquired_at)).bind(number_of(lease.renewed_at)).bind(number_of(lease.renew_seq));
    query.bind(number_of(lease.expires_at));
    lease.max_until ? query.bind(number_of(*lease.max_until)) : query.bind_null();
    query.bind(to_json(lease.meta));
}

kernel::PendingAsk read_ask(Query& row) {
    kernel::PendingAsk pending;
    pending.ask.lock_id = lock_id(row);
    pending.key_hash = {digest(row)};
    pending.ask.asker = holder(row);
    pending.ask.reason = row.text();
    pending.ask.ttl = span(row);
    pending.ask.asked_at = instant(row);
    pending.ask.expires_at = instant(row);
    return pending;
}

void bind_ask(Query& query, const kernel::PendingAsk& pending) {
    const Override& ask = pending.ask;
    query.bind(ask.lock_id.text()).bind(pending.key_hash.digest).bind(ask.asker.text).bind(ask.asker.user);
    query.bind(ask.reason).bind(ask.ttl.count()).bind(number_of(ask.asked_at)).bind(number_of(ask.expires_at));
}

/// A group of columns that is NULL as a whole, or not at all.
template <class T, class Read>
std::optional<T> optional(Query& row, int columns, Read read) {
    if (!row.at_null()) return read();
    row.skip(columns);
    return std::nullopt;
}

}  // namespace

const std::string& lock_columns() {
    static const std::string columns =
        "name, token, "
        "lock_id, key_hash, holder, user, operation, reason, ttl_ms, acquired_at, renewed_at, renew_seq, expires_at, "
        "max_until, meta, "
        "ended_lock_id, ended_key_hash, ended_how, "
        "ask_lock_id, ask_key_hash, ask_holder, ask_user, ask_reason, ask_ttl_ms, ask_asked_at, ask_expires_at, "
        "seq, chain, changed_at, boot_id, clock_offset_ms, crc";
    return columns;
}

const std::string& ticket_columns() {
    static const std::string columns =
        "name, number, lock_id, key_hash, holder, user, enqueued_at, expires_at, boot_id, clock_offset_ms, crc";
    return columns;
}

const std::string& event_columns() {
    static const std::string columns =
        "name, seq, at, event, token, lock_id, holder, user, actor, reason, details, prev_hash, hash";
    return columns;
}

Error unreadable(std::string_view lock, std::string_view what) {
    return {Errc::record_corrupt,
            fmt::format("{} of {} cannot be read; the lock stays blocked until it is repaired", what, printable(lock))};
}

Result<Stored<Record>> read_record(Query& row) {
    const std::string text(row.text());
    const auto name = LockName::parse(text);
    if (!name) return std::unexpected(unreadable(text, "the record"));
    Record record{.name = *name};
    record.token = token(row);
    record.held = optional<kernel::HeldLease>(row, lease_columns, [&] { return read_lease(row, record.token); });
    record.ended = optional<kernel::Ended>(row, ended_columns, [&] {
        const LockId id = lock_id(row);
        const Digest key = digest(row);
        return kernel::Ended{id, {key}, choice<Ending>(row, ending_names)};
    });
    record.pending = optional<kernel::PendingAsk>(row, ask_columns, [&] { return read_ask(row); });
    record.seq = count(row);
    record.chain = digest(row);
    record.changed_at = instant(row);
    ClockMark saved = mark(row);
    const std::int64_t crc = row.number();
    if (!row.intact() || crc != checksum(kernel::encode(record), record.name, saved))
        return std::unexpected(unreadable(text, "the record"));
    return Stored<Record>{std::move(record), std::move(saved)};
}

Result<Stored<Ticket>> read_ticket(Query& row) {
    const std::string text(row.text());
    const auto name = LockName::parse(text);
    if (!name) return std::unexpected(unreadable(text, "a place in the queue"));
    Ticket ticket;
    ticket.number = count(row);
    ticket.lock_id = lock_id(row);
    ticket.key_hash = {digest(row)};
    ticket.holder = holder(row);
    ticket.enqueued_at = instant(row);
    ticket.expires_at = instant(row);
    ClockMark saved = mark(row);
    const std::int64_t crc = row.number();
    if (!row.intact() || crc != checksum(kernel::encode(ticket), *name, saved))
        return std::unexpected(unreadable(text, "a place in the queue"));
    return Stored<Ticket>{std::move(ticket), std::move(saved)};
}

Result<AuditEvent> read_event(Query& row) {
    const std::string text(row.text());
    const auto name = LockName::parse(text);
    if (!name) return std::unexpected(unreadable(text, "the audit log"));
    AuditEvent event{.name = *name};
    event.seq = count(row);
    event.at = instant(row);
    event.kind = choice<EventKind>(row, event_names());
    event.token = token(row);
    event.lock_id = lock_id(row);
    event.holder = holder(row);
    event.actor = row.text();
    event.reason = row.text();
    event.details = map(row);
    event.prev_hash = digest(row);
    event.hash = digest(row);
    if (!row.intact()) return std::unexpected(unreadable(text, "the audit log"));
    return event;
}

void bind_record(Query& query, const Record& record, const ClockMark& saved) {
    query.bind(record.name.text()).bind(number_of(record.token.value));
    record.held ? bind_lease(query, *record.held) : bind_nulls(query, lease_columns);
    if (record.ended) {
        const auto how = static_cast<std::size_t>(record.ended->how) - 1;
        query.bind(record.ended->lock_id.text()).bind(record.ended->key_hash.digest).bind(ending_names.at(how));
    } else {
        bind_nulls(query, ended_columns);
    }
    record.pending ? bind_ask(query, *record.pending) : bind_nulls(query, ask_columns);
    query.bind(number_of(record.seq)).bind(record.chain).bind(number_of(record.changed_at));
    bind_mark(query, saved);
    query.bind(checksum(kernel::encode(record), record.name, saved));
}

void bind_ticket(Query& query, const LockName& name, const Ticket& ticket, const ClockMark& saved) {
    query.bind(name.text()).bind(number_of(ticket.number)).bind(ticket.lock_id.text()).bind(ticket.key_hash.digest);
    query.bind(ticket.holder.text).bind(ticket.holder.user);
    query.bind(number_of(ticket.enqueued_at)).bind(number_of(ticket.expires_at));
    bind_mark(query, saved);
    query.bind(checksum(kernel::encode(ticket), name, saved));
}

void bind_event(Query& query, const AuditEvent& event) {
    query.bind(event.name.text()).bind(number_of(event.seq)).bind(number_of(event.at)).bind(name_of(event.kind));
    query.bind(number_of(event.token.value)).bind(event.lock_id.text());
    query.bind(event.holder.text).bind(event.holder.user).bind(event.actor).bind(event.reason);
    query.bind(to_json(event.details)).bind(event.prev_hash).bind(event.hash);
}

}  // namespace holdfast::stores::sqlite
