#pragma once

#include "base/frame.hpp"
#include "stores/common/batch.hpp"
#include "stores/postgres/statements.hpp"

#include <string>
#include <vector>

/// The changes of a batch, as parameters of statements.
namespace holdfast::stores::postgres {

/// The rows of locks, column by column.
class LockRows {
public:
    /// `data` is the sealed record, `session_key` the key of the lease's advisory lock.
    void add(const kernel::Record& record, base::ByteView data, std::optional<std::int64_t> session_key = std::nullopt);
    /// $1 to $14, the same in all statements that write locks, and $15: when the change was decided.
    void bind_to(Statement& statement, Instant now) const;
    [[nodiscard]] bool empty() const { return empty_; }

private:
    bool empty_ = true;
    Array name_{Type::bytes}, token_{Type::number}, lock_id_{Type::uuid}, holder_{Type::text}, user_{Type::text},
        operation_{Type::text}, reason_{Type::text}, acquired_{Type::number}, renewed_{Type::number},
        expires_{Type::number}, seq_{Type::number}, changed_{Type::number}, data_{Type::bytes},
        session_key_{Type::number};
};

[[nodiscard]] Statement add_events(const Statements& statements, const std::vector<Change>& changes);
/// Removes the events that were pruned.
void add_cuts(std::vector<Statement>& trip, const Statements& statements, const std::vector<Change>& changes);
void add_queue(std::vector<Statement>& trip, const Statements& statements, const std::vector<Change>& changes,
               Instant now);
/// Notifies the waiters that have the lock now, or may take it, and the holders whose leases were ended.
void add_wakes(std::vector<Statement>& trip, const Statements& statements, const std::vector<Change>& changes);

/// The channel of the owner of a ticket or a lease. On one channel for each lock every waiter would wake with every
/// notification.
[[nodiscard]] std::string channel_of(const LockId& called);

}  // namespace holdfast::stores::postgres
