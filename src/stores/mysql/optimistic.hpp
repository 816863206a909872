#pragma once

#include "stores/common/optimistic.hpp"
#include "stores/mysql/apply.hpp"

/// Batches about one lock that are decided before anything is read, and written in one round trip. The statements
/// change nothing if the prediction was wrong. Batches about several locks are read first.
namespace holdfast::stores::mysql {

/// A lock as this process last wrote it.
struct KnownLock {
    kernel::Record record;  ///< Blank for a lock that was never used.
    Instant written_at{};   ///< The stored value is computed from it and the record.
};

struct Optimistic : OptimisticState<KnownLock> {};

/// A batch that was decided by predictions.
class OptimisticBatch {
public:
    /// Empty if something cannot be predicted, or depends on more than one lock and its holder.
    [[nodiscard]] static std::optional<OptimisticBatch> make(Optimistic& optimistic, std::span<const Request> requests,
                                                             const StoreId& expected, const ServerFacts& facts,
                                                             const Clock& clock);

    /// Empty if the prediction was wrong: then nothing was changed, and the connection can be used on.
    [[nodiscard]] std::optional<AttemptResult> run(Connection& connection, Deadline deadline);

    /// The change that was written, if the prediction was right.
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

private:
    explicit OptimisticBatch(Optimistic& optimistic) : optimistic_(&optimistic) {}

    Optimistic* optimistic_;
    Instant now_{};  ///< The time by which it was decided.
    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};  ///< The only one.
    Sql packet_{};                   ///< The whole transaction.
};

/// Remembers the locks that a batch has written, which was decided at `now`. Marks a lock as contended if the batch
/// could not change it or if others wait for it.
void learn(Optimistic& optimistic, std::span<const Request> requests, std::span<const Reply> replies,
           std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::mysql
