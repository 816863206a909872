#pragma once

#include "stores/batch/server_clock.hpp"
#include "stores/mysql/memory.hpp"
#include "stores/mysql/transaction.hpp"

/// Most requests are about a lock that nobody else has touched since this process did, or that was never used. Then the
/// batch can be decided before anything is read, and one round trip is enough. A guess is never an answer: the
/// transaction compares what is there and what time it is, and ends in an error before its COMMIT unless the guess was
/// right.
namespace holdfast::stores::mysql {

/// What a Store object remembers between batches.
struct Knowledge {
    Memory locks{};
    ServerClock clock{};
};

/// A batch that was decided by guesses.
class Guess {
public:
    /// Empty if something cannot be guessed, or hangs on more than locks and their holders.
    [[nodiscard]] static std::optional<Guess> make(Knowledge& knowledge, std::span<const Request> requests,
                                                   const StoreId& expected, const ServerFacts& facts,
                                                   const Clock& clock);

    /// Nothing, if it was wrong: it has changed nothing then, and the connection can go on. `Remedy::look` if nobody
    /// knows whether it is done.
    [[nodiscard]] std::optional<std::expected<std::vector<Reply>, Trouble>> run(Connection& connection,
                                                                                Deadline deadline);

    /// What it has changed if it was right.
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

private:
    Guess(Knowledge& knowledge, Expected expected) : knowledge_(&knowledge), expected_(expected) {}

    /// Why it was not written, and whether it may have been all the same.
    struct Setback {
        Failure failure;
        bool may_be_done = false;
    };
    [[nodiscard]] std::optional<Setback> write(Connection& connection, Deadline deadline) const;
    void was_right();
    void was_wrong(const Failure& failure);

    Knowledge* knowledge_;
    Expected expected_;
    Instant now_{};  ///< By which it was decided.
    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};
    std::vector<Memory::Known> before_{};  ///< What it takes for granted, for each change.
    std::set<LockName> fresh_{};           ///< Those that were never used.
};

/// Remembers what a batch has left that was decided at `now`, and avoids guesses at locks that it could not change or
/// that others wait for.
void learn(Memory& memory, std::span<const Request> requests, std::span<const Reply> replies,
           std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::mysql
