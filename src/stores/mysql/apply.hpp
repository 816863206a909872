#pragma once

#include "stores/common/attempt.hpp"
#include "stores/common/batch.hpp"
#include "stores/mysql/codec.hpp"
#include "stores/mysql/queue_rows.hpp"
#include "stores/mysql/schema.hpp"
#include "stores/mysql/session.hpp"

#include <expected>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace holdfast::stores::mysql {

/// A reading of the server's clock, with our clock before and after it.
struct Sight {
    Instant time{};
    Boottime sent{};
    Boottime received{};
};

/// One attempt to apply a batch, in one transaction.
class Transaction {
public:
    Transaction(Connection& connection, Batch& batch, const ServerFacts& facts, const SessionView& sessions,
                const Clock& clock, Deadline deadline, Busy busy, const InDoubt* doubt = nullptr)
        : connection_(connection),
          batch_(batch),
          facts_(facts),
          sessions_(sessions),
          clock_(clock),
          deadline_(deadline),
          busy_(busy),
          doubt_(doubt) {}

    /// In the store `expected` and no other. If an earlier attempt at the same batch is in doubt: its replies if it was
    /// committed, `outcome_unknown` if that cannot be found out any more.
    [[nodiscard]] AttemptResult run(const StoreId& expected);

    /// What the server's clock showed when the locks were read.
    [[nodiscard]] const Sight& sight() const { return sight_; }
    /// Whether the store is marked as used by now.
    [[nodiscard]] bool was_used() const { return was_used_; }
    /// The time by which the batch was decided.
    [[nodiscard]] Instant decided_at() const { return now_; }

private:
    using Done = std::expected<void, AttemptError>;

    [[nodiscard]] Done read(const StoreId& expected);
    /// The lock in `row`, with its queue.
    [[nodiscard]] Result<LockView> view_in(const Row& row, const Wanted& wanted, const Queues& queues,
                                           const Judging& judging);
    /// Adds the statements that lock the rows. How many they are.
    std::size_t lock_rows(Sql& sql, std::span<const LockName> names) const;
    /// Inserts rows for locks that have none, so that there is something to lock.
    [[nodiscard]] Done make_ready(const std::vector<LockName>& names);
    /// Tells the batch of locks for which no row was found: they are new, or have lost their rows, or others have
    /// locked the rows.
    [[nodiscard]] Done look_again(const std::vector<LockName>& names);
    [[nodiscard]] Done write();
    void roll_back();

    /// The outcome of the batch in doubt, if the rows show it.
    [[nodiscard]] std::optional<AttemptResult> resolved() const;

    /// Ends the lease in `record` if its session is gone.
    void judge_session(const Row& row, const Wanted& wanted, kernel::Record& record);
    /// The locks whose leases depend on a session from now on.
    [[nodiscard]] std::set<LockName> sessions_to_write() const;

    [[nodiscard]] AttemptError after_reading(const Failure& failure);
    /// `added`: how many statements before the others add rows for new locks. `commit`: which one is COMMIT.
    [[nodiscard]] AttemptError after_writing(const Failure& failure, std::size_t added,
                                             std::optional<std::size_t> commit);
    [[nodiscard]] AttemptError rows_are_locked(std::vector<LockName> locks) const;

    Connection& connection_;
    Batch& batch_;
    const ServerFacts& facts_;
    const SessionView& sessions_;
    const Clock& clock_;
    const Deadline deadline_;
    const Busy busy_;
    const InDoubt* const doubt_;  ///< Null if there is none.
    Sight sight_{};
    Instant now_{};
    bool was_used_ = false;
    InDoubt::Verdict verdict_ =
        InDoubt::Verdict::not_committed;  ///< Of the lock that shows the outcome of the batch in doubt.
    std::map<LockName, LockId> bound_{};  ///< The leases that depend on a session, as they were read.
    std::set<LockName> new_{};            ///< Locks that had no row.
};

}  // namespace holdfast::stores::mysql
