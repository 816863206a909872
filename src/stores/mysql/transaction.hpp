#pragma once

#include "stores/batch/batch.hpp"
#include "stores/mysql/lock_rows.hpp"
#include "stores/mysql/schema.hpp"
#include "stores/mysql/session_locks.hpp"

#include <expected>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace holdfast::stores::mysql {

/// A batch that may have been committed, or not. All of it or nothing, so one of its locks shows which.
struct Doubt {
    LockName name;
    std::uint64_t seq = 0;  ///< Of the last event that the lock would have,
    Digest chain{};         ///< and its hash.
    std::vector<Reply> replies{};
};

/// Why an attempt gave no replies, and what may be done about it.
struct Trouble {
    enum class Remedy {
        none,
        go_on,       ///< Rows were made ready for locks that had none. Now it can work.
        repeat,      ///< Somebody was in the way. Nothing was changed.
        reconnect,   ///< The connection had died. Nothing was changed.
        one_by_one,  ///< One lock of the batch spoils it. Nothing was changed.
        wait,  ///< Somebody else has locked rows of the batch, and nobody was to wait for them. Nothing was changed.
        look_closely,  ///< What a quick look showed does not tell what is there. Nothing was changed.
        look,          ///< Nobody knows whether it was committed: `doubt` says what to look for.
    };
    Remedy remedy = Remedy::none;
    Error error;
    std::vector<LockName> busy{};          ///< Whose rows they are, if that is known.
    std::shared_ptr<const Doubt> doubt{};  ///< Shared, since a Trouble is copied and replies are many.
};

/// A moment of the server's clock, and between which of ours it was.
struct Sight {
    Instant time{};
    Boottime sent{};
    Boottime received{};
};

/// What to do about rows that somebody else has locked.
enum class Busy { wait, report };

/// How the locks of a batch are read. A quick look takes one round trip, and is enough for locks that have a record,
/// and for new ones that nobody else has in hand; a close look tells everything.
enum class Look { quick, close };

/// One attempt to apply a batch, in one transaction.
class Transaction {
public:
    Transaction(Connection& connection, Batch& batch, const ServerFacts& facts, const SessionView& sessions,
                const Clock& clock, Deadline deadline, Busy busy, const Doubt* doubt = nullptr)
        : connection_(connection),
          batch_(batch),
          facts_(facts),
          sessions_(sessions),
          clock_(clock),
          deadline_(deadline),
          busy_(busy),
          doubt_(doubt) {}

    /// In the store `expected` and no other. With a doubt, which is about the same batch, its replies if it was
    /// committed; `outcome_unknown` if that cannot be told any more.
    [[nodiscard]] std::expected<std::vector<Reply>, Trouble> run(const StoreId& expected);

    /// What the server's clock showed when the locks were read.
    [[nodiscard]] const Sight& sight() const { return sight_; }
    /// By what clock it was decided.
    [[nodiscard]] Instant decided_at() const { return now_; }

private:
    using Done = std::expected<void, Trouble>;
    /// The last event of a lock.
    struct Mark {
        std::uint64_t seq = 0;
        Digest chain{};
    };

    [[nodiscard]] std::expected<std::vector<Reply>, Trouble> attempt(const StoreId& expected, Look look);
    [[nodiscard]] Done read(const StoreId& expected);
    /// The statements that lock the rows, and how many they are.
    std::size_t lock_rows(Sql& sql, std::span<const LockName> names) const;
    /// Rows for locks that have none, so that there is something to lock.
    [[nodiscard]] Done make_ready(const std::vector<LockName>& names);
    /// What is to be known of locks of which no row was seen.
    [[nodiscard]] Done take_for_new(const std::vector<LockName>& names);
    [[nodiscard]] Done look_again(const std::vector<LockName>& names);
    [[nodiscard]] Done write();
    void roll_back();

    /// How the doubt ends, if the rows show it.
    [[nodiscard]] std::optional<std::expected<std::vector<Reply>, Trouble>> resolved() const;

    /// A record as it counts: a lease that has lost its session is over.
    void judge_session(const Row& row, const Wanted& wanted, kernel::Record& record);
    /// The locks whose leases depend on a session from now on.
    [[nodiscard]] std::set<LockName> sessions_to_write() const;

    [[nodiscard]] Trouble after_reading(const Failure& failure);
    /// `added`: how many statements before the others add rows for new locks. `commit`: which one is COMMIT.
    [[nodiscard]] Trouble after_writing(const Failure& failure, std::size_t added, std::optional<std::size_t> commit);
    [[nodiscard]] Trouble somebody_has(std::vector<LockName> locks) const;

    Connection& connection_;
    Batch& batch_;
    const ServerFacts& facts_;
    const SessionView& sessions_;
    const Clock& clock_;
    const Deadline deadline_;
    const Busy busy_;
    const Doubt* const doubt_;  ///< Null without one.
    Look look_ = Look::quick;
    Sight sight_{};
    Instant now_{};
    std::optional<Mark> doubted_{};       ///< Where the lock of the doubt is, if it has a record.
    std::map<LockName, LockId> bound_{};  ///< The leases that depend on a session, as they were read.
    std::set<LockName> new_{};            ///< Locks that had no row.
    bool open_ = false;                   ///< The server may have a transaction of ours.
};

}  // namespace holdfast::stores::mysql
