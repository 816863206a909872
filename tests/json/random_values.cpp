#include "json/random_values.hpp"

#include <array>

namespace holdfast::json {

std::uint64_t RandomValues::number_below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
}

std::uint64_t RandomValues::number() {
    switch (number_below(4)) {
        case 0: return number_below(3);
        case 1: return FencingToken::limit - 1 - number_below(3);
        default: return number_below(FencingToken::limit);
    }
}

std::string RandomValues::text() {
    static const std::array<std::string, 20> pieces{"a",
                                                    "deploy",
                                                    "\"",
                                                    "\\",
                                                    "/",
                                                    "\n",
                                                    "\t",
                                                    std::string(1, '\0'),
                                                    "\x1b[2J",
                                                    "\x7f",
                                                    "\xc2\x9b",
                                                    "\xe2\x80\xae",
                                                    "\xe2\x80\xa8",
                                                    "ü",
                                                    "\xf0\x9f\x94\x92",
                                                    "</script>",
                                                    "${file:x}",
                                                    " ",
                                                    "null",
                                                    "\\u0041"};
    std::string text;
    for (std::uint64_t count = number_below(6); count > 0; --count) text += pieces[number_below(pieces.size())];
    return text;
}

LockName RandomValues::name() {
    while (true)
        if (auto name = LockName::parse(text())) return std::move(*name);
}

std::vector<LockName> RandomValues::names() {
    std::vector<LockName> names;
    for (std::uint64_t count = number_below(4); count > 0; --count) names.push_back(name());
    return names;
}

Instant RandomValues::time() {
    constexpr std::uint64_t end_of_9999 = 253'402'300'800'000;
    return Instant{std::chrono::milliseconds{
        static_cast<std::int64_t>(maybe() ? number_below(end_of_9999) : end_of_9999 - 1 - number_below(2))}};
}

std::chrono::milliseconds RandomValues::duration() {
    return std::chrono::milliseconds{static_cast<std::int64_t>(number())};
}

Ttl RandomValues::ttl() {
    const auto span = static_cast<std::uint64_t>((Ttl::longest - Ttl::shortest).count());
    return *Ttl::of(Ttl::shortest + std::chrono::milliseconds{static_cast<std::int64_t>(number_below(span + 1))});
}

Digest RandomValues::digest() {
    Digest digest{};
    for (auto& byte : digest) byte = static_cast<std::uint8_t>(number_below(256));
    return digest;
}

std::map<std::string, std::string> RandomValues::texts() {
    std::map<std::string, std::string> texts;
    for (std::uint64_t count = number_below(4); count > 0; --count) texts.emplace(text(), text());
    return texts;
}

StoreInfo RandomValues::store() {
    constexpr std::array grades{Grade::a, Grade::b, Grade::c};
    StoreInfo info;
    if (maybe()) info.store_id = StoreId::random();
    info.grade = grades[number_below(grades.size())];
    return info;
}

Lease RandomValues::lease(FencingToken token) {
    Lease lease{.lock_id = LockId::random(), .token = token, .holder = holder(), .operation = text(), .reason = text()};
    lease.ttl = duration();
    lease.acquired_at = time();
    lease.renewed_at = time();
    lease.renew_seq = number();
    lease.expires_at = time();
    if (maybe()) lease.max_until = time();
    lease.meta = texts();
    return lease;
}

LockStatus RandomValues::lock() {
    LockStatus status{.name = name(), .token = FencingToken{number()}};
    if (maybe()) {
        status.state = maybe() ? LockState::held : LockState::expired;
        status.lease = lease(status.token);
    }
    if (maybe()) status.override_request = Override{LockId::random(), holder(), text(), duration(), time(), time()};
    status.waiters = number();
    status.seq = number();
    status.chain = digest();
    status.pruned_seq = number();
    status.as_of = time();
    return status;
}

Outcome RandomValues::outcome() {
    Outcome outcome{lock(), std::nullopt};
    if (maybe()) outcome.stolen_from = StolenFrom{LockId::random(), FencingToken{number()}, holder(), time()};
    return outcome;
}

Error RandomValues::error() {
    const auto rows = error_table();
    Error error{rows[number_below(rows.size())].code, text()};
    error.hint = text();
    if (maybe()) error.retry_after = duration();
    if (maybe()) error.holder = std::make_shared<const LockStatus>(lock());
    return error;
}

AuditEvent RandomValues::event() {
    const auto kinds = static_cast<std::uint64_t>(newest_event_kind);
    AuditEvent event{.name = name()};
    event.seq = number();
    event.at = time();
    event.kind = static_cast<EventKind>(1 + number_below(kinds));
    event.token = FencingToken{number()};
    event.lock_id = LockId::random();
    event.holder = holder();
    event.actor = text();
    event.reason = text();
    event.details = texts();
    event.prev_hash = digest();
    event.hash = digest();
    return event;
}

Request RandomValues::request() {
    const Credentials as = Credentials::random();
    const auto maybe_time = [&] { return maybe() ? std::optional(duration()) : std::nullopt; };
    switch (number_below(12)) {
        case 0: {
            Acquire acquire{
                .name = name(), .as = as, .holder = holder(), .operation = text(), .reason = text(), .ttl = ttl()};
            acquire.max_hold = maybe_time();
            if (maybe()) acquire.ticket = ttl();
            acquire.unless_held = names();
            acquire.meta = texts();
            if (maybe()) acquire.takes_over = StaleLease{LockId::random(), number(), duration()};
            return acquire;
        }
        case 1:
            return Renew{name(), as, ttl(), maybe() ? Revive::yes : Revive::no,
                         maybe() ? std::optional(texts()) : std::nullopt};
        case 2: return Release{name(), as};
        case 3: return Cancel{name(), as};
        case 4: return Transfer{name(), as, {"x" + text(), text()}, Credentials::random(), text()};
        case 5: return Break{name(), LockId::random(), text(), text()};
        case 6:
            return Check{name(), FencingToken{number()}, maybe() ? std::optional(LockId::random()) : std::nullopt,
                         names()};
        case 7: return Ask{name(), as, holder(), text(), ttl(), ttl()};
        case 8:
            return Answer{name(),       LockId::random(), maybe() ? Verdict::approve : Verdict::deny,
                          text(),       text(),           maybe() ? std::optional(as) : std::nullopt,
                          maybe_time(), maybe_time(),     maybe()};
        case 9: return Prune{name(), number(), text(), text()};
        case 10: return ReportFenced{name(), FencingToken{number()}, LockId::random(), holder(), text(), text()};
        default: return Expire{name(), LockId::random()};
    }
}

}  // namespace holdfast::json
