#pragma once

#include "stores/postgres/connection.hpp"

#include <string>

namespace holdfast::stores::postgres {

/// Every statement that Holdfast sends for locks, with the schema's name in place. Only that name is ever part of
/// a text; all else is bound. Each row that a text reads or writes is named with its schema.
struct Statements {
    explicit Statements(const Settings& settings);

    /// The first statement of every transaction after BEGIN: sets timeouts and durability, and reads the store's
    /// identity. The settings hold for the transaction alone, so that a pooler may give the session to another client
    /// afterwards.
    /// $1 ms for each statement, $2 ms between statements, $3 ms for each wait for a row. Answers: format, store_id,
    /// whether the store was used.
    RepeatedText enter;
    /// The same for a store whose format has no mark of its use; and for any other.
    RepeatedText enter_old;
    /// $1 names, in byte order. Inserts rows for locks that were never used, so that there is something to lock.
    RepeatedText place;
    /// $1 names. Answer the names of the rows that are locked now.
    RepeatedText lock_to_change;
    RepeatedText lock_to_look;
    /// The same, without rows that another transaction has locked.
    RepeatedText lock_to_change_if_free;
    RepeatedText lock_to_look_if_free;
    /// $1 name, $2 lock_id. The same for a lock in whose queue that waiter has a place; otherwise nothing is locked.
    RepeatedText lock_in_line;
    RepeatedText lock_in_line_if_free;
    /// $1 the test's clock or NULL, $2 names, $3 how deep to look into their queues, $4 and $5 names and lock_ids of
    /// tickets that are wanted wherever they stand, $6 1 where somebody asks for the lock. Answers rows of several
    /// kinds: see `read_view`.
    RepeatedText view;

    /// $1 to $15: see `LockRows`. Rows that are there and locked.
    RepeatedText put_locks;
    /// The same for locks that must have no row.
    RepeatedText put_new;
    /// The same, with $16 data, $17 token and $18 lock_id that the rows must have until then.
    RepeatedText put_known;
    RepeatedText drop_known;
    /// $1 names, $2 lock_ids, $3 data that the tickets must have.
    /// After those three, in a statement of its own, which sees what was committed before the rows were ours: $1 the
    /// test's clock or NULL, between $2 and $3 now, $4 names, $5 1 where nobody may wait for the lock, $6 for a new
    /// lock the number of its last event, $7 for a lock that is free now the channel on which the next in line is
    /// called, $8 store_id, $9 format. The store must have the mark of its use. Answers names and how many wait for
    /// each.
    ///
    /// All four fail, which undoes the transaction, unless everything is as it must be.
    RepeatedText confirm;
    RepeatedText put_tickets;
    RepeatedText drop_tickets;  ///< $1 names, $2 lock_ids.
    std::string clear_queues;   ///< $1 names. Drops all tickets of these locks.
    /// $1 name. What is there of a lock that cannot be read: token, seq, lock_id and data of its row, the highest
    /// number and token in its log, data of its newest and of its oldest event.
    std::string traces;
    RepeatedText add_events;
    /// $1 name, $2 and $3: removes the events after $2, up to $3. For one lock only, so that the plan, which is kept,
    /// is always a range of the key.
    RepeatedText cut_events;
    RepeatedText wake;  ///< $1 channels, $2 payloads.

    /// Notes that the store has had a lock, in the transaction that writes the first one. The last statement before
    /// COMMIT, since all transactions that write a first lock wait for each other here.
    RepeatedText mark_used;

    RepeatedText begin_change;
    RepeatedText commit;

    /// $1 clock or NULL, $2 first name, $3 end of names, $4 1 with free ones, $5 changed since or NULL, $6 limit or
    /// NULL.
    std::string list;
    /// Begin with the newest, or with the oldest event.
    struct Histories {
        std::string of_one;  ///< $1 name, $2 after seq, $3 since, $4 limit or NULL.
        std::string of_all;  ///< $1 since, $2 limit or NULL.
    };
    Histories newest;
    Histories oldest;
    /// $1 clock or NULL, $2 names, $3 tickets or NULLs. Answers a row for each, in their order: seq, whether anybody
    /// may take the lock, how long its lease lasts, whether the ticket is in the queue, how many live ones are ahead of
    /// it, up to a few.
    RepeatedText watches;
};

/// How long a session may do nothing inside a transaction before the server ends it. A client that is stopped inside a
/// transaction would block the locks that it was about to change.
inline constexpr std::chrono::milliseconds longest_pause{5000};

/// BEGIN for reads that all see the same moment.
[[nodiscard]] Statement begin_look();
/// No wait for a row takes longer than `longest_wait`, if that is given.
[[nodiscard]] Statement enter(const Statements& statements, const base::CallBudget& budget,
                              std::optional<std::chrono::milliseconds> longest_wait = std::nullopt);
/// The same for a store of any format that we know.
[[nodiscard]] Statement enter_old(const Statements& statements, const base::CallBudget& budget);

}  // namespace holdfast::stores::postgres
