#pragma once

#include "stores/common/optimistic.hpp"
#include "stores/mysql/apply.hpp"

/// Batches that are decided before anything is read: in one round trip for a few locks, and in three with bound values
/// for many. The transaction compares everything with the prediction, and ends in an error before its COMMIT if
/// something is different.
namespace holdfast::stores::mysql {

struct Optimistic : OptimisticState<KnownLock> {};

/// A batch that was decided by predictions.
class OptimisticBatch {
public:
    /// Empty if something cannot be predicted, or depends on more than locks and their holders.
    [[nodiscard]] static std::optional<OptimisticBatch> make(Optimistic& optimistic, std::span<const Request> requests,
                                                             const StoreId& expected, const ServerFacts& facts,
                                                             const Clock& clock);

    /// Empty if the prediction was wrong: then nothing was changed, and the connection can be used on.
    [[nodiscard]] std::optional<AttemptResult> run(Connection& connection, Deadline deadline);

    /// What was written, if the prediction was right.
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

private:
    OptimisticBatch(Optimistic& optimistic, Prediction prediction)
        : optimistic_(&optimistic), prediction_(std::move(prediction)) {}

    /// Why the batch was not committed. `in_doubt`: or perhaps it was.
    struct NotWritten {
        Failure failure{};
        bool in_doubt = false;
    };
    [[nodiscard]] std::optional<NotWritten> write(Connection& connection, Deadline deadline) const;

    Optimistic* optimistic_;
    Prediction prediction_;
    Instant now_{};  ///< The time by which it was decided.
    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};
    std::set<LockName> fresh_{};  ///< Locks that are predicted to have no row.
};

/// Remembers the locks that a batch has written, which was decided at `now`. Marks a lock as contended if the batch
/// could not change it or if others wait for it.
void learn(Optimistic& optimistic, std::span<const Request> requests, std::span<const Reply> replies,
           std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::mysql
