#include "kernel/refusal.hpp"

#include "kernel/step.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace holdfast::kernel {
namespace {

constexpr std::size_t max_holder = 255;
constexpr std::size_t max_operation = 255;
constexpr std::size_t max_reason = 1024;
constexpr std::size_t max_meta = 4096;
constexpr std::size_t max_unless_held = 16;

std::string holding(const Lease& lease, Instant now) {
    std::string text =
        fmt::format("{} since {}", printable(lease.holder.display()), clock_time(lease.acquired_at, now));
    if (!lease.operation.empty()) text += fmt::format(", \"{}\"", printable(lease.operation));
    if (!lease.reason.empty()) text += fmt::format(" ({})", printable(lease.reason));
    return text + (lease.expires_at > now ? ", expires in " + to_words(lease.expires_at - now)
                                          : ", expired " + to_words(now - lease.expires_at) + " ago");
}

Error refusal(Errc code, std::string message, const Record& record, std::uint64_t waiters, Instant now) {
    return {code, std::move(message), std::make_shared<const LockStatus>(status_of(record, waiters, now)),
            std::nullopt};
}

std::optional<Error> too_long(std::string_view what, std::string_view text, std::size_t limit) {
    if (text.size() > limit)
        return Error{Errc::usage, fmt::format("the {} has {} bytes, and {} is the most", what, text.size(), limit)};
    if (!is_utf8(text)) return Error{Errc::usage, fmt::format("the {} is not UTF-8", what)};
    return std::nullopt;
}

std::optional<Error> bad_line(std::string_view what, std::string_view text, std::size_t limit) {
    if (has_control(text)) return Error{Errc::usage, fmt::format("the {} contains a control character", what)};
    return too_long(what, text, limit);
}

std::optional<Error> bad_time(std::string_view what, const std::optional<std::chrono::milliseconds>& longest) {
    if (!longest || (*longest >= Ttl::shortest && *longest <= Ttl::longest)) return std::nullopt;
    return Error{Errc::usage, fmt::format("a longest {} of {} ms is outside the limits", what, longest->count())};
}

std::optional<Error> bad_holder(const Holder& holder) {
    if (holder.text.empty()) return Error{Errc::usage, "the holder cannot be empty"};
    if (auto error = bad_line("holder", holder.text, max_holder)) return error;
    return bad_line("user", holder.user, max_holder);
}

std::optional<Error> bad_sender(const Sender* sender) {
    if (sender == nullptr) return std::nullopt;
    if (auto error = bad_line("user", sender->user, max_holder)) return error;
    return bad_line("address", sender->address, max_holder);
}

std::optional<Error> bad_exclusions(const LockName& name, const std::vector<LockName>& unless_held) {
    if (unless_held.size() > max_unless_held)
        return Error{Errc::usage, fmt::format("at most {} locks can be named in unless_held", max_unless_held)};
    if (std::ranges::find(unless_held, name) != unless_held.end())
        return Error{Errc::usage, fmt::format("\"{}\" cannot exclude itself", name.text())};
    return std::nullopt;
}

std::optional<Error> bad_meta(const std::map<std::string, std::string>& meta) {
    std::size_t size = 0;
    for (const auto& [key, value] : meta) {
        if (auto error = bad_line("meta key", key, max_meta)) return error;
        if (auto error = too_long("meta value", value, max_meta)) return error;
        size += key.size() + value.size();
    }
    if (size > max_meta)
        return Error{Errc::usage, fmt::format("meta has {} bytes, and {} is the most", size, max_meta)};
    return std::nullopt;
}

struct Limits {
    std::optional<Error> operator()(const Acquire& r) const {
        if (auto error = bad_holder(r.holder)) return error;
        if (auto error = bad_line("operation", r.operation, max_operation)) return error;
        if (auto error = too_long("reason", r.reason, max_reason)) return error;
        if (auto error = bad_time("hold", r.max_hold)) return error;
        if (r.takes_over && r.ticket) return Error{Errc::usage, "a lease is taken over at once, not from the queue"};
        if (r.takes_over)
            if (auto error = bad_time("time without a renewal", r.takes_over->after)) return error;
        if (auto error = bad_exclusions(r.name, r.unless_held)) return error;
        return bad_meta(r.meta);
    }
    std::optional<Error> operator()(const Transfer& r) const {
        if (r.as.lock_id == r.to_as.lock_id) return Error{Errc::usage, "a transfer needs a new lock_id"};
        if (auto error = bad_holder(r.to)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const Break& r) const {
        if (r.actor.empty()) return Error{Errc::usage, "who breaks a lock must be named"};
        if (auto error = bad_line("actor", r.actor, max_holder)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const Check& r) const { return bad_exclusions(r.name, r.unless_held); }
    std::optional<Error> operator()(const Ask& r) const {
        if (auto error = bad_holder(r.holder)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const Answer& r) const {
        if (r.actor.empty()) return Error{Errc::usage, "who answers must be named"};
        if (auto error = bad_time("ttl", r.longest_ttl)) return error;
        if (auto error = bad_time("hold", r.max_hold)) return error;
        if (auto error = bad_line("actor", r.actor, max_holder)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const Prune& r) const {
        if (r.actor.empty()) return Error{Errc::usage, "who prunes the audit log must be named"};
        if (auto error = bad_line("actor", r.actor, max_holder)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const Repair& r) const {
        if (r.actor.empty()) return Error{Errc::usage, "who repairs a lock must be named"};
        if (auto error = bad_line("actor", r.actor, max_holder)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const ReportFenced& r) const {
        if (auto error = bad_holder(r.holder)) return error;
        if (auto error = bad_line("resource", r.resource, max_holder)) return error;
        return too_long("reason", r.reason, max_reason);
    }
    std::optional<Error> operator()(const Renew& r) const { return r.meta ? bad_meta(*r.meta) : std::nullopt; }
    std::optional<Error> operator()(const Release&) const { return std::nullopt; }
    std::optional<Error> operator()(const Cancel&) const { return std::nullopt; }
    std::optional<Error> operator()(const Expire&) const { return std::nullopt; }
};

}  // namespace

Error held_by_another(const Record& record, std::uint64_t waiters, Instant now) {
    const Lease& lease = record.held->lease;
    Error error = refusal(Errc::lock_conflict, fmt::format("{} is held by {}", record.name.text(), holding(lease, now)),
                          record, waiters, now);
    error.retry_after = std::max(lease.expires_at - now, std::chrono::milliseconds{0});
    return error;
}

Error not_taken_over(const Record& record, const StaleLease& seen, std::uint64_t waiters, Instant now) {
    Error error = held_by_another(record, waiters, now);
    const Lease& lease = record.held->lease;
    const auto stale_in = lease.renewed_at + seen.after - now;
    if (lease.lock_id != seen.lock_id) {
        error.message += "; that is another lease than the one to be taken over";
    } else if (lease.renew_seq != seen.renew_seq) {
        error.message += "; it was renewed " + clock_time(lease.renewed_at, now) + ", so its holder is active";
    } else if (stale_in > std::chrono::milliseconds{0}) {
        error.message += "; it can be taken over in " + to_words(stale_in) + " if it is not renewed until then";
        error.retry_after = std::min(*error.retry_after, stale_in);
    } else {
        error.message += "; it is stale, but another waiter is first in line";
    }
    return error;
}

Error first_in_line(const Record& record, const Ticket& head, std::uint64_t waiters, Instant now) {
    Error error = refusal(Errc::lock_conflict,
                          fmt::format("{} is free, but {} is first in line, waiting since {}", record.name.text(),
                                      printable(head.holder.display()), clock_time(head.enqueued_at, now)),
                          record, waiters, now);
    error.retry_after = head.expires_at - now;
    return error;
}

Error not_yours(const Record& record, std::uint64_t waiters, Instant now) {
    const std::string instead =
        record.held ? "it is held by " + holding(record.held->lease, now) : std::string("nobody holds it");
    return refusal(Errc::lock_not_held, fmt::format("{} is not held by this lease: {}", record.name.text(), instead),
                   record, waiters, now);
}

Error ran_out(const Record& record, std::uint64_t waiters, Instant now) {
    return refusal(Errc::lock_expired,
                   fmt::format("the lease on {} ran out {} ago", record.name.text(),
                               // A clock that was put back a little does not bring back what has been announced.
                               to_words(std::max(now - record.held->lease.expires_at, std::chrono::milliseconds{0}))),
                   record, waiters, now);
}

Error announced_before(const Record& record, std::uint64_t waiters, Instant now) {
    return refusal(Errc::lock_not_held,
                   fmt::format("that the lease on {} ran out has been announced before", record.name.text()), record,
                   waiters, now);
}

Error stale_token(const Record& record, FencingToken token, std::uint64_t waiters, Instant now) {
    return refusal(Errc::fencing_mismatch,
                   fmt::format("token {} of {} is not the current one, which is {}", token.value, record.name.text(),
                               record.token.value),
                   record, waiters, now);
}

std::optional<Error> beyond_limits(const Request& request) {
    if (auto error = bad_sender(sender_of(request))) return error;
    return std::visit(Limits{}, request);
}

}  // namespace holdfast::kernel
