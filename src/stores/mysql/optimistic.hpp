#pragma once

#include "stores/mysql/apply.hpp"
#include "stores/mysql/known_lock.hpp"

/// Batches that are decided before anything is read, and written in one round trip. A wrong prediction ends in an error
/// before the COMMIT.
namespace holdfast::stores::mysql {

/// A batch that was decided by predictions.
class OptimisticBatch {
public:
    /// Empty if something cannot be predicted, or depends on more than locks and their holders.
    [[nodiscard]] static std::optional<OptimisticBatch> make(Optimistic& optimistic, std::span<const Request> requests,
                                                             const StoreId& expected, const ServerFacts& facts,
                                                             const Clock& clock);

    /// Empty if the prediction was wrong: then nothing was changed, and the connection can be used on.
    [[nodiscard]] std::optional<AttemptResult> run(Connection& connection, Deadline deadline);

    /// What it has changed if it was right.
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

private:
    OptimisticBatch(Optimistic& optimistic, Expected expected) : optimistic_(&optimistic), expected_(expected) {}

    struct WriteError {
        Failure failure;
        bool may_be_committed = false;
    };
    [[nodiscard]] std::expected<void, WriteError> write(Connection& connection, Deadline deadline) const;
    void mispredicted(const Failure& failure);

    Optimistic* optimistic_;
    Expected expected_;
    Instant now_{};  ///< By which it was decided.
    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};
    std::vector<KnownLock> before_{};  ///< The prediction, for each change.
    std::set<LockName> fresh_{};       ///< Those that were never used.
};

/// Remembers what a batch has left that was decided at `now`, and marks locks as contended that it could not change or
/// that others wait for.
void learn(Optimistic& optimistic, std::span<const Request> requests, std::span<const Reply> replies,
           std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::mysql
