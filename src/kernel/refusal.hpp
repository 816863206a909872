#pragma once

#include "kernel/record.hpp"

/// The words of a refusal: the holder, since when, for what, for how long.
namespace holdfast::kernel {

/// `conflict` because `record`'s lease is live.
[[nodiscard]] Error held_by_another(const Record& record, std::uint64_t waiters, Instant now);

/// `conflict` although the caller wants to take the lease over: it is not the one that was `seen`, is not stale yet, or
/// another waiter comes first.
[[nodiscard]] Error not_taken_over(const Record& record, const StaleLease& seen, std::uint64_t waiters, Instant now);

/// `conflict` although `record` is free: `head` is first in the queue.
[[nodiscard]] Error first_in_line(const Record& record, const Ticket& head, std::uint64_t waiters, Instant now);

/// `lock_not_held`, naming the present holder, if there is one.
[[nodiscard]] Error not_yours(const Record& record, std::uint64_t waiters, Instant now);

/// `lock_expired`: the caller's own lease.
[[nodiscard]] Error ran_out(const Record& record, std::uint64_t waiters, Instant now);

/// `lock_not_held`: the end of this lease has been announced already.
[[nodiscard]] Error announced_before(const Record& record, std::uint64_t waiters, Instant now);

/// `fencing_mismatch`: `token` is not the current one.
[[nodiscard]] Error stale_token(const Record& record, FencingToken token, std::uint64_t waiters, Instant now);

/// `usage`, if any text or list of the request is beyond its limit.
[[nodiscard]] std::optional<Error> beyond_limits(const Request& request);

}  // namespace holdfast::kernel
