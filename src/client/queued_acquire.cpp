#include "client/queued_acquire.hpp"

#include "base/jitter.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// A call that hangs longer than this would outlive the ticket that it keeps alive.
constexpr milliseconds call_timeout{2000};

/// The longest sleep of a waiter that has no place in this queue: a wake-up is a hint that may be lost.
milliseconds poll_interval(const Acquire& request) {
    return std::clamp(request.ttl.time() / 4, milliseconds{20}, milliseconds{1000});
}

/// How long a queued waiter can still find a lease that was granted without its knowledge.
milliseconds certainty(const Acquire& request) {
    return request.max_hold ? std::min(request.ticket->time(), *request.max_hold) : request.ticket->time();
}

/// Short enough that a dead waiter does not block the others for long.
Ttl ticket_ttl(const Acquire& request) {
    return *Ttl::of(std::clamp(request.ttl.time(), milliseconds{3000}, milliseconds{10000}));
}

}  // namespace

QueuedAcquire::QueuedAcquire(Acquire request, const Clock& clock) : clock_(clock), request_(std::move(request)) {
    if (!request_.ticket) request_.ticket = ticket_ttl(request_);
}

std::vector<Request> QueuedAcquire::ask() {
    if (doubt_is_stale()) rotate_credentials();
    std::vector<Request> batch;
    if (former_) batch.emplace_back(Cancel{request_.name, *former_, request_.sender});
    batch.emplace_back(request_);
    return batch;
}

/// A request that a stopped store receives late must not be applied once the doubt has become stale.
Deadline QueuedAcquire::time_to_ask() const {
    return {std::min(Deadline::in(clock_, call_timeout).at, end_of_doubt())};
}

Result<Granted> QueuedAcquire::answered(const Result<std::vector<Reply>>& replies, Boottime sent_at) {
    asks_again_ = false;
    if (replies) former_.reset();
    const Reply reply = replies ? replies->back() : std::unexpected(replies.error());
    if (reply) return Granted{*reply, sent_at, request_.as};

    const Errc code = reply.error().code;
    const bool is_over = code == Errc::lock_not_held || (code == Errc::lock_expired && in_line_since_);
    if (is_over && (doubted_since_ || in_line_since_)) {
        rotate_credentials();
        asks_again_ = true;
    }
    if (code == Errc::outcome_unknown && !doubted_since_) doubted_since_ = sent_at;
    // If an answer was a grant, the lease would be there still.
    if (code == Errc::lock_conflict && !doubt_is_stale()) doubted_since_.reset();
    if (code == Errc::lock_conflict) in_line_since_ = sent_at;
    return std::unexpected(reply.error());
}

std::vector<Request> QueuedAcquire::withdrawal() const {
    std::vector<Request> batch{Cancel{request_.name, request_.as, request_.sender}};
    if (former_) batch.emplace_back(Cancel{request_.name, *former_, request_.sender});
    return batch;
}

Result<void> QueuedAcquire::withdrawn(const Result<std::vector<Reply>>& replies) const {
    const bool may_be_handed_on = in_line_since_ && clock_.boottime() < *in_line_since_ + request_.ticket->time();
    const bool is_sure = !doubted_since_ && !former_ && !may_be_handed_on;
    if (!replies) return is_sure ? Result<void>{} : fail(Errc::outcome_unknown, replies.error().message);
    for (const Reply& reply : *replies)
        if (!reply && !is_sure) return fail(Errc::outcome_unknown, reply.error().message);
    return {};
}

bool QueuedAcquire::is_in_line(const Error& obstacle) const {
    return obstacle.holder && obstacle.holder->name == request_.name;
}

std::optional<Watch> QueuedAcquire::watch(const Error& obstacle) const {
    if (!obstacle.holder) return std::nullopt;
    return Watch{obstacle.holder->name, obstacle.holder->seq,
                 is_in_line(obstacle) ? std::optional(request_.as.lock_id) : std::nullopt};
}

milliseconds QueuedAcquire::nap(const Error& obstacle) const {
    // The store tells a queued waiter when its turn comes. Until then it asks only to keep its place.
    const milliseconds longest = is_in_line(obstacle) ? certainty(request_) / 3 : poll_interval(request_);
    return base::random_between(longest / 2, longest);
}

bool QueuedAcquire::is_passing(Errc code) {
    return code == Errc::lock_conflict || code == Errc::store_unavailable || code == Errc::outcome_unknown;
}

/// Until then a grant whose answer was lost is still in the store. A little before the lease ends by our clock: the
/// store's may be faster, and both count whole milliseconds.
Boottime QueuedAcquire::end_of_doubt() const {
    const auto end = [](std::optional<Boottime> since, milliseconds time) {
        return since ? *since + time * 9 / 10 : Boottime::max();
    };
    return std::min(end(doubted_since_, request_.ttl.time()), end(in_line_since_, certainty(request_)));
}

void QueuedAcquire::rotate_credentials() {
    former_ = std::exchange(request_.as, Credentials::random());
    doubted_since_.reset();
    in_line_since_.reset();
}

}  // namespace holdfast::client
