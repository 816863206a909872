#include "kernel/codec.hpp"

#include "values/sha256.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace holdfast::kernel {
namespace {

class Writer {
public:
    /// Most values fit, so that the bytes need not move while they are written.
    Writer() { bytes_.reserve(512); }

    void number(std::uint64_t value) {
        std::array<std::uint8_t, 8> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
        raw(bytes);
    }
    void time(std::chrono::milliseconds time) { number(static_cast<std::uint64_t>(time.count())); }
    void instant(Instant instant) { time(instant.time_since_epoch()); }
    void raw(std::span<const std::uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void text(std::string_view text) {
        number(text.size());
        bytes_.insert(bytes_.end(), text.begin(), text.end());
    }
    void map(const std::map<std::string, std::string>& map) {
        number(map.size());
        for (const auto& [key, value] : map) {
            text(key);
            text(value);
        }
    }
    void holder(const Holder& holder) {
        text(holder.text);
        text(holder.user);
    }
    template <class T, class Write>
    void optional(const std::optional<T>& value, Write write) {
        bytes_.push_back(value ? 1 : 0);
        if (value) write(*value);
    }
    Bytes take() { return std::move(bytes_); }

private:
    Bytes bytes_;
};

/// Reads what Writer wrote. After the first error everything reads as empty, and `complete()` is false: callers check
/// once, at the end.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

    std::uint64_t number() {
        std::uint64_t value = 0;
        const auto bytes = take(8);
        for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
        return value;
    }
    std::chrono::milliseconds time() {
        // A time beyond this is damage, and sums of such times would overflow.
        constexpr std::int64_t limit = std::int64_t{1} << 53;
        const auto count = static_cast<std::int64_t>(number());
        if (count <= -limit || count >= limit) ok_ = false;
        return std::chrono::milliseconds{ok_ ? count : 0};
    }
    Instant instant() { return Instant{time()}; }
    template <std::size_t N>
    std::array<std::uint8_t, N> raw() {
        std::array<std::uint8_t, N> value{};
        const auto bytes = take(N);
        if (!bytes.empty()) std::memcpy(value.data(), bytes.data(), N);
        return value;
    }
    std::string text() {
        const auto bytes = take(number());
        return {bytes.begin(), bytes.end()};
    }
    /// A text that is not written where it is empty.
    std::string text_of_some() {
        std::string some = text();
        if (some.empty()) ok_ = false;
        return some;
    }
    std::map<std::string, std::string> map() {
        std::map<std::string, std::string> map;
        for (std::uint64_t count = number(); count > 0 && ok_; --count) {
            std::string key = text();
            // Ascending keys only, so that every map has one encoding.
            if (!map.empty() && key <= map.rbegin()->first) ok_ = false;
            map.emplace(std::move(key), text());
        }
        return map;
    }
    FencingToken token() {
        const FencingToken token{number()};
        // The next one must fit, too.
        if (token.value >= FencingToken::limit - 1) ok_ = false;
        return ok_ ? token : FencingToken{};
    }
    Holder holder() {
        std::string name = text();
        return {std::move(name), text()};
    }
    template <class Read>
    auto optional(Read read) -> std::optional<decltype(read())> {
        const auto flag = take(1);
        if (flag.empty() || flag[0] == 0) return std::nullopt;
        if (flag[0] != 1) ok_ = false;
        return read();
    }
    template <class Enum>
    Enum choice(Enum last) {
        const auto value = number();
        if (value < 1 || value > static_cast<std::uint64_t>(last)) ok_ = false;
        return ok_ ? static_cast<Enum>(value) : last;
    }
    std::optional<LockName> name() {
        const auto name = LockName::parse(text());
        if (!name) ok_ = false;
        return name ? std::optional(*name) : std::nullopt;
    }
    [[nodiscard]] bool has_more() const { return ok_ && !rest_.empty(); }
    [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }

private:
    std::span<const std::uint8_t> take(std::uint64_t count) {
        if (!ok_ || count > rest_.size()) {
            ok_ = false;
            return {};
        }
        const auto taken = rest_.first(static_cast<std::size_t>(count));
        rest_ = rest_.subspan(static_cast<std::size_t>(count));
        return taken;
    }

    std::span<const std::uint8_t> rest_;
    bool ok_ = true;
};

void write(Writer& out, const Lease& lease) {
    out.raw(lease.lock_id.bytes());
    out.number(lease.token.value);
    out.holder(lease.holder);
    out.text(lease.operation);
    out.text(lease.reason);
    out.time(lease.ttl);
    out.instant(lease.acquired_at);
    out.instant(lease.renewed_at);
    out.number(lease.renew_seq);
    out.instant(lease.expires_at);
    out.optional(lease.max_until, [&](Instant until) { out.instant(until); });
    out.map(lease.meta);
}

void write(Writer& out, const Claim& claim) {
    out.text(claim.operation);
    out.text(claim.reason);
    out.time(claim.ttl);
    out.optional(claim.max_hold, [&](std::chrono::milliseconds time) { out.time(time); });
    out.map(claim.meta);
    // At the end of a ticket, and only where there is one: so tickets without it are what they always were.
    if (!claim.address.empty()) out.text(claim.address);
}

Claim read_claim(Reader& in) {
    Claim claim;
    claim.operation = in.text();
    claim.reason = in.text();
    claim.ttl = in.time();
    claim.max_hold = in.optional([&] { return in.time(); });
    claim.meta = in.map();
    if (in.has_more()) claim.address = in.text_of_some();
    return claim;
}

Lease read_lease(Reader& in) {
    Lease lease;
    lease.lock_id = LockId(in.raw<16>());
    lease.token = in.token();
    lease.holder = in.holder();
    lease.operation = in.text();
    lease.reason = in.text();
    lease.ttl = in.time();
    lease.acquired_at = in.instant();
    lease.renewed_at = in.instant();
    lease.renew_seq = in.number();
    lease.expires_at = in.instant();
    lease.max_until = in.optional([&] { return in.instant(); });
    lease.meta = in.map();
    return lease;
}

void write(Writer& out, const Override& ask) {
    out.raw(ask.lock_id.bytes());
    out.holder(ask.asker);
    out.text(ask.reason);
    out.time(ask.ttl);
    out.instant(ask.asked_at);
    out.instant(ask.expires_at);
}

Override read_override(Reader& in) {
    Override ask;
    ask.lock_id = LockId(in.raw<16>());
    ask.asker = in.holder();
    ask.reason = in.text();
    ask.ttl = in.time();
    ask.asked_at = in.instant();
    ask.expires_at = in.instant();
    return ask;
}

/// Everything but the hash, which is computed over exactly this.
void write_hashed_part(Writer& out, const AuditEvent& event) {
    out.text(event.name.text());
    out.number(event.seq);
    out.instant(event.at);
    out.number(static_cast<std::uint64_t>(event.kind));
    out.number(event.token.value);
    out.raw(event.lock_id.bytes());
    out.holder(event.holder);
    out.text(event.actor);
    out.text(event.reason);
    out.map(event.details);
    out.raw(event.prev_hash);
}

}  // namespace

Bytes encode(const Record& record) {
    Writer out;
    out.text(record.name.text());
    out.number(record.token.value);
    out.optional(record.held, [&](const HeldLease& held) {
        write(out, held.lease);
        out.raw(held.key_hash.digest);
    });
    out.optional(record.ended, [&](const Ended& ended) {
        out.raw(ended.lock_id.bytes());
        out.raw(ended.key_hash.digest);
        out.number(static_cast<std::uint64_t>(ended.how));
    });
    out.optional(record.pending, [&](const PendingAsk& pending) {
        write(out, pending.ask);
        out.raw(pending.key_hash.digest);
    });
    out.number(record.seq);
    out.raw(record.chain);
    out.instant(record.changed_at);
    out.number(record.pruned_seq);
    return out.take();
}

Bytes encode(const Ticket& ticket) {
    Writer out;
    out.raw(ticket.lock_id.bytes());
    out.raw(ticket.key_hash.digest);
    out.number(ticket.number);
    out.holder(ticket.holder);
    out.instant(ticket.enqueued_at);
    out.instant(ticket.expires_at);
    out.optional(ticket.claim, [&](const Claim& claim) { write(out, claim); });
    return out.take();
}

Bytes encode(const AuditEvent& event) {
    Writer out;
    write_hashed_part(out, event);
    out.raw(event.hash);
    return out.take();
}

std::optional<Record> decode_record(std::span<const std::uint8_t> bytes) {
    Reader in(bytes);
    auto name = in.name();
    if (!name) return std::nullopt;
    Record record{.name = std::move(*name)};
    record.token = in.token();
    record.held = in.optional([&] {
        Lease lease = read_lease(in);
        return HeldLease{std::move(lease), KeyHash{in.raw<32>()}};
    });
    record.ended = in.optional([&] {
        Ended ended;
        ended.lock_id = LockId(in.raw<16>());
        ended.key_hash = {in.raw<32>()};
        ended.how = in.choice(Ending::transferred);
        return ended;
    });
    record.pending = in.optional([&] {
        Override ask = read_override(in);
        return PendingAsk{std::move(ask), KeyHash{in.raw<32>()}};
    });
    record.seq = in.number();
    record.chain = in.raw<32>();
    record.changed_at = in.instant();
    record.pruned_seq = in.number();
    // The newest event is always there.
    const bool is_possible = record.pruned_seq < std::max<std::uint64_t>(record.seq, 1);
    if (!in.complete() || !is_possible) return std::nullopt;
    return record;
}

std::optional<Ticket> decode_ticket(std::span<const std::uint8_t> bytes) {
    Reader in(bytes);
    Ticket ticket;
    ticket.lock_id = LockId(in.raw<16>());
    ticket.key_hash = {in.raw<32>()};
    ticket.number = in.number();
    ticket.holder = in.holder();
    ticket.enqueued_at = in.instant();
    ticket.expires_at = in.instant();
    ticket.claim = in.optional([&] { return read_claim(in); });
    if (!in.complete()) return std::nullopt;
    return ticket;
}

std::optional<AuditEvent> decode_event(std::span<const std::uint8_t> bytes) {
    Reader in(bytes);
    auto name = in.name();
    if (!name) return std::nullopt;
    AuditEvent event{.name = std::move(*name)};
    event.seq = in.number();
    event.at = in.instant();
    event.kind = in.choice(newest_event_kind);
    event.token = in.token();
    event.lock_id = LockId(in.raw<16>());
    event.holder = in.holder();
    event.actor = in.text();
    event.reason = in.text();
    event.details = in.map();
    event.prev_hash = in.raw<32>();
    event.hash = in.raw<32>();
    if (!in.complete()) return std::nullopt;
    return event;
}

Digest hash_of(const AuditEvent& event) {
    Writer out;
    write_hashed_part(out, event);
    return sha256(out.take());
}

}  // namespace holdfast::kernel
