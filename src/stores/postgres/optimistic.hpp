#pragma once

#include "stores/common/optimistic.hpp"
#include "stores/postgres/apply.hpp"

/// Batches that are decided before anything is read, and written in one round trip.
namespace holdfast::stores::postgres {

/// A lock as this process last wrote or read it.
struct KnownLock {
    struct FirstTicket {
        kernel::Ticket ticket;
        base::Bytes data{};
    };
    kernel::Record record;
    base::Bytes data{};                  ///< The record as it was written. Empty for a lock that was never used.
    std::optional<FirstTicket> first{};  ///< The head of its queue. Empty: nobody waits.
};

struct Optimistic : OptimisticState<KnownLock> {};

/// A batch that was decided by predictions.
class OptimisticBatch {
public:
    /// Empty if something cannot be predicted, or depends on more than locks and their holders.
    [[nodiscard]] static std::optional<OptimisticBatch> make(const Context& context, std::span<const Request> requests,
                                                             const base::CallBudget& budget);

    /// The whole transaction.
    [[nodiscard]] const std::vector<Statement>& trip() const { return trip_; }
    /// The replies, after the transaction was committed.
    [[nodiscard]] Result<Applied> read(const Context& context, std::span<const Request> requests, const Trip& trip);
    /// What to look for if nobody knows whether it was committed.
    [[nodiscard]] InDoubt in_doubt(Error error) const;
    /// To be called when the prediction was wrong, and nothing was changed.
    void mispredicted(const Context& context) const;

private:
    OptimisticBatch() = default;

    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};
    std::vector<base::Bytes> data_{};  ///< For each change, what is written of its lock.
    std::vector<Statement> trip_{};
};

/// Remembers the locks that a batch has written, and marks the locks that it could not change as contended.
void learn(Optimistic& optimistic, std::span<const Wanted> wanted, std::span<const Change> changes,
           std::span<const base::Bytes> data);

}  // namespace holdfast::stores::postgres
