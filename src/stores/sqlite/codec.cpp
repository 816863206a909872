#include "stores/sqlite/codec.hpp"

#include "base/crc32c.hpp"
#include "base/frame.hpp"
#include "kernel/codec.hpp"
#include "stores/sqlite/json_map.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::stores::sqlite {
namespace {

using kernel::ClockMark;
using kernel::Record;
using kernel::Ticket;
using std::chrono::milliseconds;

/// From `lock_id` to `expires_at`.
constexpr int lease_columns = 5;

// Each reads one type of column, and marks the row as damaged if the column has another type.

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

/// No clock shows more. Deadlines are added to, and must not overflow.
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
        std::array<std::string_view, static_cast<std::size_t>(newest_event_kind)> all{};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = name_of(static_cast<EventKind>(i + 1));
        return all;
    }();
    return names;
}

void bind_mark(Query& query, const ClockMark& saved) { query.bind(saved.boot_id).bind(saved.offset.count()); }

std::int64_t checksum(kernel::Bytes bytes, const LockName& name, const ClockMark& saved) {
    // The checksum covers the lock's name, which a ticket does not contain, so that it cannot pass for a ticket of
    // another lock.
    const std::string rest = fmt::format("{} {} {}", saved.offset.count(), saved.boot_id, name.text());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return base::crc32c(bytes);
}

base::Bytes sealed(const Record& record, const ClockMark& saved) {
    base::PayloadWriter out;
    out.text(saved.boot_id);
    out.number(static_cast<std::uint64_t>(saved.offset.count()));
    out.bytes(kernel::encode(record));
    return base::framed(base::FrameKind::record, out.take());
}

std::optional<Stored<Record>> unsealed(base::ByteView bytes) {
    const auto payload = base::only_frame(base::FrameKind::record, bytes);
    if (!payload) return std::nullopt;
    base::PayloadReader in(*payload);
    ClockMark saved;
    saved.boot_id = in.text();
    saved.offset = milliseconds{static_cast<std::int64_t>(in.number())};
    auto record = kernel::decode_record(in.bytes());
    if (!record || !in.complete()) return std::nullopt;
    return Stored<Record>{std::move(*record), std::move(saved)};
}

/// Whether the columns that people read say the same as the record. All of them are looked at, one after the other.
bool agrees(Query& row, const Record& record) {
    const auto is = [&row](const auto& expected) { return row.at_null() ? (row.skip(), false) : expected(row); };
    const auto number = [](std::int64_t value) { return [value](Query& column) { return column.number() == value; }; };
    const auto text = [](std::string_view value) { return [value](Query& column) { return column.text() == value; }; };
    if (!is(number(number_of(record.token.value)))) return false;
    if (record.held) {
        const Lease& lease = record.held->lease;
        if (!is(text(lease.lock_id.text())) || !is(text(lease.holder.text)) || !is(text(lease.operation)) ||
            !is(number(number_of(lease.acquired_at))) || !is(number(number_of(lease.expires_at))))
            return false;
    } else {
        for (int column = 0; column < lease_columns; ++column, row.skip())
            if (!row.at_null()) return false;
    }
    return is(number(number_of(record.seq)));
}

/// The same of a ticket, as far as `shown` goes.
bool agree(const Ticket& ticket, const Ticket& shown) {
    return ticket.number == shown.number && ticket.lock_id == shown.lock_id &&
           ticket.holder.text == shown.holder.text && ticket.expires_at == shown.expires_at;
}

}  // namespace

const std::string& lock_columns() {
    static const std::string columns = "name, record, token, lock_id, holder, operation, acquired_at, expires_at, seq";
    return columns;
}

const std::string& ticket_columns() {
    static const std::string columns =
        "name, number, lock_id, holder, expires_at, boot_id, clock_offset_ms, ticket, crc";
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
    auto stored = unsealed(row.blob());
    if (!stored || stored->value.name.text() != text || !agrees(row, stored->value) || !row.intact())
        return std::unexpected(unreadable(text, "the record"));
    return std::move(*stored);
}

Result<Stored<Ticket>> read_ticket(Query& row) {
    const std::string text(row.text());
    const auto name = LockName::parse(text);
    if (!name) return std::unexpected(unreadable(text, "a place in the queue"));
    Ticket shown;
    shown.number = count(row);
    shown.lock_id = lock_id(row);
    shown.holder.text = row.text();
    shown.expires_at = instant(row);
    ClockMark saved = mark(row);
    const auto bytes = row.blob();
    auto ticket = kernel::decode_ticket(bytes);
    const bool fits = checksum({bytes.begin(), bytes.end()}, *name, saved) == row.number();
    if (!row.intact() || !fits || !ticket || !agree(*ticket, shown))
        return std::unexpected(unreadable(text, "a place in the queue"));
    return Stored<Ticket>{std::move(*ticket), std::move(saved)};
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
    query.bind(record.name.text()).bind(sealed(record, saved)).bind(number_of(record.token.value));
    if (record.held) {
        const Lease& lease = record.held->lease;
        query.bind(lease.lock_id.text()).bind(lease.holder.text).bind(lease.operation);
        query.bind(number_of(lease.acquired_at)).bind(number_of(lease.expires_at));
    } else {
        for (int column = 0; column < lease_columns; ++column) query.bind_null();
    }
    query.bind(number_of(record.seq));
}

void bind_ticket(Query& query, const LockName& name, const Ticket& ticket, const ClockMark& saved) {
    kernel::Bytes bytes = kernel::encode(ticket);
    const std::int64_t crc = checksum(bytes, name, saved);
    query.bind(name.text()).bind(number_of(ticket.number)).bind(ticket.lock_id.text()).bind(ticket.holder.text);
    query.bind(number_of(ticket.expires_at));
    bind_mark(query, saved);
    query.bind(std::move(bytes)).bind(crc);
}

void bind_event(Query& query, const AuditEvent& event) {
    query.bind(event.name.text()).bind(number_of(event.seq)).bind(number_of(event.at)).bind(name_of(event.kind));
    query.bind(number_of(event.token.value)).bind(event.lock_id.text());
    query.bind(event.holder.text).bind(event.holder.user).bind(event.actor).bind(event.reason);
    query.bind(to_json(event.details)).bind(event.prev_hash).bind(event.hash);
}

}  // namespace holdfast::stores::sqlite
