#pragma once

#include "base/fd.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <stop_token>
#include <string>

namespace holdfast::base {

/// What one waiter sleeps on until it is rung: a named pipe of its own. Unlike inotify instances, of which a
/// user has 128, pipes with names are limited by the disk and the process's descriptors alone.
class Doorbell {
public:
    /// True when it was rung, false when `deadline` passed or `stop` was asked for.
    [[nodiscard]] bool wait(const Clock& clock, Deadline deadline, const std::stop_token& stop) const;

private:
    friend class Doorbells;
    explicit Doorbell(Fd pipe) : pipe_(std::move(pipe)) {}
    Fd pipe_;
};

/// The bells of those who wait, one for each ticket, in a folder of their own.
///
/// A ring carries no truth. One that is lost costs the waiter the time until it looks by itself, so nothing
/// here reports a failure to whoever changes a lock. A bell that nobody waits at forgets that it was rung.
class Doorbells {
public:
    explicit Doorbells(std::string folder) : folder_(std::move(folder)) {}

    /// Makes the bell, and the folder, where they are missing. Hang it first, then look, then wait: what
    /// happens in between is not missed.
    [[nodiscard]] Result<Doorbell> hang(const LockId& ticket) const;
    void ring(const LockId& ticket) const;
    /// The ticket is gone, and its bell goes with it.
    void take_down(const LockId& ticket) const;

private:
    [[nodiscard]] std::string path_of(const LockId& ticket) const { return folder_ + "/" + ticket.text(); }

    std::string folder_;
};

}  // namespace holdfast::base
