#pragma once

#include "stores/batch/server_clock.hpp"
#include "stores/redis/round.hpp"

#include <mutex>
#include <unordered_map>

/// What this process can say about locks without asking: what it wrote last, and what time it is at the server.
/// A guess saves the look before a change. It is never an answer: the script compares the versions and the clock, and
/// writes nothing unless the guess was right.
namespace holdfast::stores::redis {

/// The locks that this process changed last, as it left them, or was handed, as it found them. May be used by any
/// thread.
class Memory {
public:
    struct Lock {
        std::string value{};  ///< Of its key, which changes with the queue, too.
        LockView view;        ///< Of the queue, the head at most.
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

/// Whether a decision by guesses may be sent: nothing in it hangs on a lease having run out, and nobody was refused.
[[nodiscard]] bool is_sound_guess(std::span<const Memory::Lock> guesses, std::span<const holdfast::Reply> replies,
                                  std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::redis
