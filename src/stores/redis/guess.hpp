#pragma once

#include "stores/redis/round.hpp"

#include <mutex>
#include <unordered_map>

/// What this process can say about locks without asking: what it wrote last, and what time it is at the server.
/// A guess saves the look before a change. It is never an answer: the script compares the versions and the clock, and
/// writes nothing unless the guess was right.
namespace holdfast::stores::redis {

/// The locks that this process changed last, as it left them. Only locks that nobody waits for. May be used by any
/// thread.
class Memory {
public:
    struct Lock {
        std::string value{};  ///< Of its key.
        kernel::Record record;
    };

    /// A lock that is not remembered is taken for one that was never used.
    [[nodiscard]] Lock guess(const LockName& name);
    void remember(const LockName& name, Lock lock);
    void forget(const LockName& name);

private:
    using Locks = std::unordered_map<std::string, Lock>;

    std::mutex mutex_;
    /// Guarded by mutex_. When the newer ones have become too many, the older ones go and they take their place.
    Locks newer_{};
    Locks older_{};
};

/// The server's clock, told from an earlier answer. May be used by any thread.
class ServerClock {
public:
    /// An answer said `time`, to a request that was sent at `sent`.
    void saw(Instant time, Boottime sent, Boottime received);

    /// What it shows when a request that is sent now gets there: never less than when it leaves. Absent if that cannot
    /// be told.
    [[nodiscard]] std::optional<Instant> on_arrival() const;

    /// When a change that was decided at `guess` may be written. A clock that is ahead of the guess would let a lease
    /// end before its holder believes; the difference stays within the holder's own margin, also for the shortest
    /// lease.
    [[nodiscard]] static Window window_for(Instant guess);

private:
    struct Seen {
        Instant time{};
        Boottime sent{};
        std::chrono::milliseconds trip{};  ///< There and back.
    };
    mutable std::mutex mutex_;
    std::optional<Seen> seen_{};  ///< Guarded by mutex_.
};

/// Whether a decision by guesses may be sent: nothing in it hangs on a lease having run out, and nobody was refused.
[[nodiscard]] bool is_sound_guess(std::span<const Memory::Lock> guesses, std::span<const holdfast::Reply> replies,
                                  std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::redis
