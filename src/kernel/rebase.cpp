#include "kernel/rebase.hpp"

#include <algorithm>

namespace holdfast::kernel {
namespace {

using std::chrono::milliseconds;

/// Below this a difference is slewing, or the moment between two readings, and not a step.
constexpr milliseconds noise{100};

/// No clock is as far off as this. A mark that says so was not written by us, and must not make sums overflow.
constexpr milliseconds farthest{std::int64_t{1} << 53};

milliseconds step_between(const ClockMark& then, const ClockMark& mark) {
    const milliseconds step = mark.offset - std::clamp(then.offset, -farthest, farthest);
    return step > -noise && step < noise ? milliseconds{0} : step;
}

}  // namespace

ClockMark mark_of(const Clock& clock) {
    // A process that is stopped between two readings would take the pause for a step of the wall clock and end the
    // leases of others early, so it reads again. The rest of a pause stays below the tolerance.
    while (true) {
        const Boottime before = clock.boottime();
        const Instant wall = clock.wall();
        if (clock.boottime() - before >= noise / 2) continue;
        return {clock.boot_id(), wall.time_since_epoch() - before.time_since_epoch()};
    }
}

Record rebase(Record record, const ClockMark& then, const ClockMark& mark, Instant now) {
    const bool rebooted = then.boot_id != mark.boot_id;
    const auto step = rebooted ? milliseconds{0} : step_between(then, mark);
    if (record.held) {
        Lease& lease = record.held->lease;
        // A lease whose end was announced stays over, also under a wall clock that lost the date.
        const Instant latest = record.is_announced() ? now : now + lease.ttl;
        lease.expires_at = rebooted ? std::min(lease.expires_at, latest) : lease.expires_at + step;
        if (lease.max_until) *lease.max_until += step;
    }
    if (record.pending) {
        Override& ask = record.pending->ask;
        ask.expires_at =
            rebooted ? std::min(ask.expires_at, now + (ask.expires_at - ask.asked_at)) : ask.expires_at + step;
    }
    return record;
}

Ticket rebase(Ticket ticket, const ClockMark& then, const ClockMark& mark, Instant now) {
    // A waiter does not survive a reboot.
    const bool rebooted = then.boot_id != mark.boot_id;
    ticket.expires_at = rebooted ? std::min(ticket.expires_at, now) : ticket.expires_at + step_between(then, mark);
    return ticket;
}

}  // namespace holdfast::kernel
