#pragma once

#include "base/turn.hpp"
#include "holdfast/clock.hpp"
#include "stores/file/lock_folder.hpp"

#include <chrono>
#include <optional>

namespace holdfast::stores::file {

/// Looks from time to time whether the turn of one waiter has come.
///
/// The queue is a folder, and reading it costs the more the longer it is; the record costs the same always.
/// So the queue is read only when the record says that its reader could be first by now.
class Lookout {
public:
    Lookout(const LockId& ticket, const Clock& clock) : ticket_(ticket), clock_(clock) {}

    /// How long the waiter may sleep; empty if its turn has come, the lock is its own, or it has no place.
    [[nodiscard]] Result<std::optional<std::chrono::milliseconds>> look(const LockFolder& lock);

private:
    [[nodiscard]] bool may_be_first(std::uint64_t seq, bool is_open) const;
    [[nodiscard]] Result<void> read_queue(const LockFolder& lock, std::uint64_t seq, Instant now);

    LockId ticket_;
    const Clock& clock_;
    base::Standing standing_ = base::Standing::behind;
    // Of the last reading of the queue:
    std::uint64_t ahead_ = 0;  ///< Waiters before ours.
    std::uint64_t seq_ = 0;    ///< Of the lock's newest event.
    Boottime read_at_ = Boottime::min();
};

}  // namespace holdfast::stores::file
