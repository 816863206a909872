#pragma once

#include "stores/batch/server_clock.hpp"
#include "stores/postgres/transaction.hpp"

#include <unordered_map>

/// Most requests are about a lock that nobody else has touched since this process did, or that was never used. Then the
/// batch can be decided before anything is read, and one round trip is enough. A guess is never an answer: the
/// transaction compares what is there and what time it is, and changes nothing unless the guess was right.
namespace holdfast::stores::postgres {

/// What this Store object can say about locks without asking. May be used by any thread.
class Memory {
public:
    struct Place {
        kernel::Ticket ticket;
        base::Bytes data{};
    };
    struct Lock {
        kernel::Record record;
        base::Bytes data{};            ///< The record as it was written. Empty for a lock that was never used.
        std::optional<Place> first{};  ///< In line. Absent: nobody waits.
    };

    /// Absent if it is better to read. A lock that nothing is known of is taken for one that was never used, unless
    /// that was wrong just now.
    [[nodiscard]] std::optional<Lock> guess(const LockName& name);
    void remember(Lock lock);
    /// Others use it, too.
    void avoid(const LockName& name);
    [[nodiscard]] bool is_avoided(const LockName& name);
    /// A lock that was taken for a new one is not.
    void took_for_new();

private:
    using Locks = std::unordered_map<std::string, std::optional<Lock>>;
    void keep(const std::string& name, std::optional<Lock> lock);
    /// Needs mutex_. Null if nothing is known.
    [[nodiscard]] const std::optional<Lock>* find(const LockName& name) const;

    std::mutex mutex_;
    /// Guarded by mutex_. When the newer ones have become too many, the older ones go and they take their place.
    Locks newer_{};
    Locks older_{};
    int reads_first_ = 0;  ///< Guarded by mutex_. How many more unknown locks are not guessed at.
};

/// What a Store object remembers between batches.
struct Knowledge {
    Memory locks{};
    ServerClock clock{};
};

/// A batch that was decided by guesses.
class Guess {
public:
    /// Empty if something cannot be guessed, or hangs on more than locks and their holders.
    [[nodiscard]] static std::optional<Guess> make(const Context& context, std::span<const Request> requests,
                                                   const Budget& budget);

    /// All of the transaction.
    [[nodiscard]] const std::vector<Statement>& trip() const { return trip_; }
    /// It was right, and is done.
    [[nodiscard]] Result<Applied> read(const Context& context, std::span<const Request> requests, const Trip& trip);
    /// What to look for if nobody knows whether it is done.
    [[nodiscard]] Doubt doubt(Error error) const;
    /// Nothing was changed.
    void was_wrong(const Context& context) const;

private:
    Guess() = default;

    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};
    std::vector<base::Bytes> data_{};  ///< What becomes of the lock of each change.
    std::vector<Statement> trip_{};
};

/// A guess of the clock was a moment ahead when the lock was changed last. Its events stay in the order of time; that
/// cannot end its lease early, which counts from that moment. In a batch with other locks it could end theirs.
[[nodiscard]] Instant not_before(const kernel::Record& record, Instant now);

/// Remembers what a batch has left, and avoids guesses at locks that it could not change.
void learn(Memory& memory, std::span<const Wanted> wanted, std::span<const Change> changes,
           std::span<const base::Bytes> data);

}  // namespace holdfast::stores::postgres
