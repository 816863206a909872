#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/fence.hpp"
#include "sql/session.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The table `holdfast_fence`, on a connection that somebody else owns. `include/holdfast/fence.hpp` is built on it.
namespace holdfast::guards::fence {

/// One row of the table. The holder that sealed it last may write.
struct SealedRow {
    std::string name{};
    StoreId store_id{};
    FencingToken token{};
    LockId lock_id{};
};

/// A session of an earlier holder that has not ended yet.
struct EarlierSession {
    std::int64_t id = 0;  ///< Of the server.
    std::string words{};  ///< For people: whose it is, and what it does.
};

/// The statements of one dialect, with the names of this database in them. Values are bound: $1 the name, $2 the
/// store_id, $3 the token, $4 the lock_id.
struct Texts {
    std::string exists{};               ///< A row if the table is there.
    std::vector<std::string> create{};  ///< The table, in one transaction.
    std::vector<std::string> begin_sealing{};
    std::vector<std::string> end_sealing{};  ///< Takes back what outlasts the transaction.
    std::string add_row{};                   ///< Unless there is one.
    std::string lock_row{};
    std::string change_row{};
    std::string check{};  ///< A row if the claim is the newest. Locks it against a seal.
    std::string read_row{};
    std::string list{};
};

class Fence {
public:
    /// Finds out where the table is, or would be; creates nothing. `session` must outlive the fence. Refused with
    /// `store_unsafe` on Galera, where a locked row of one node stops nobody on another.
    [[nodiscard]] static Result<std::unique_ptr<Fence>> of(sql::Session& session, const Clock& clock,
                                                           Deadline deadline);
    Fence(const Fence&) = delete;
    Fence& operator=(const Fence&) = delete;
    virtual ~Fence() = default;

    [[nodiscard]] Result<bool> exists(Deadline deadline);
    /// The table, unless it is there. Two that do so at once both succeed.
    [[nodiscard]] Result<void> create(Deadline deadline);
    /// `holdfast_assert`, for transactions of users. Made again if it is there. Two that do so at once both succeed.
    [[nodiscard]] Result<void> install_assert(Deadline deadline);

    /// A row for `name`, unless there is one, so that its holders seal from now on: see `IfUnfenced::leave`.
    [[nodiscard]] Result<void> expect_holders_of(const LockName& name, const StoreId& store_id, Deadline deadline);

    /// Lets nobody but `claim` write from now on, as `FencedDatabase::seal` says. Repeating it is harmless.
    [[nodiscard]] Result<void> seal(const FenceClaim& claim, std::chrono::milliseconds patience, Deadline deadline);
    /// An operator's decision: from now on the tokens of `store_id` count for `name`, whatever was sealed before.
    [[nodiscard]] Result<void> bind(const LockName& name, const StoreId& store_id, Deadline deadline);

    /// BEGIN, and the check. When it is refused nothing is begun. A process that pauses in the transaction for longer
    /// than `lease_left` loses it, where the server has a limit for that.
    [[nodiscard]] Result<void> begin(const FenceClaim& claim, std::chrono::milliseconds lease_left, Deadline deadline);
    /// The check alone, as the first statement of a transaction that the caller began. `fencing_mismatch`: roll back.
    [[nodiscard]] Result<void> check(const FenceClaim& claim, Deadline deadline);
    /// Without an answer it is `outcome_unknown`.
    [[nodiscard]] Result<void> commit(Deadline deadline);
    /// As far as the connection still works; the server rolls back by itself when it is gone.
    void rollback();

    /// From now on this connection may run statements that commit by themselves, one after the other: the next holder
    /// ends it first. Not in a transaction. Refused with `fencing_mismatch` if a newer holder was here, and with
    /// `store_unsafe` where connections cannot be told apart.
    [[nodiscard]] virtual Result<void> enter_connection(const FenceClaim& claim, Deadline deadline) = 0;
    virtual void leave_connection() = 0;

    /// Where the table is, for a statement; empty where a database has no schemas.
    [[nodiscard]] virtual std::string quoted_schema() const { return ""; }
    [[nodiscard]] Result<std::optional<SealedRow>> row(const LockName& name, Deadline deadline);
    [[nodiscard]] Result<std::vector<SealedRow>> rows(Deadline deadline);

    /// The table and `holdfast_assert` as statements for a SQL shell.
    [[nodiscard]] static std::string script(SqlDialect dialect);

protected:
    Fence(sql::Session& session, const Clock& clock, Texts texts)
        : session_(&session), clock_(&clock), texts_(std::move(texts)) {}

    [[nodiscard]] sql::Session& session() const { return *session_; }
    [[nodiscard]] const Clock& clock() const { return *clock_; }
    [[nodiscard]] const Texts& texts() const { return texts_; }

    /// What begins a fenced transaction, up to the check.
    [[nodiscard]] virtual std::vector<sql::Command> beginning(const FenceClaim& claim,
                                                              std::chrono::milliseconds lease_left) const = 0;
    /// What makes a session of this claim known to the next holder, inside a transaction.
    [[nodiscard]] virtual std::vector<sql::Command> mark(const FenceClaim& claim) const = 0;
    /// After the end of a fenced transaction.
    virtual void ended() {}
    [[nodiscard]] virtual std::vector<std::string> assert_statements() const = 0;
    /// Asks the server to end the sessions of earlier holders, and tells which are there still.
    [[nodiscard]] virtual Result<std::vector<EarlierSession>> end_earlier(const FenceClaim& claim,
                                                                          Deadline deadline) = 0;
    /// Of the claim, for a check with the texts alone.
    [[nodiscard]] Error mismatch(const FenceClaim& claim, Deadline deadline);

private:
    enum class Attempt { sealed, row_is_locked };
    [[nodiscard]] Result<Attempt> try_seal(const FenceClaim& claim, Deadline deadline);
    [[nodiscard]] std::expected<Result<void>, sql::StatementError> seal_in_transaction(const FenceClaim& claim,
                                                                                       Deadline deadline);

    sql::Session* session_;
    const Clock* clock_;
    Texts texts_;
};

/// $1 to $4 of a claim.
[[nodiscard]] std::vector<SqlValue> values_of(const FenceClaim& claim);

/// What to do with a lock that the fence has no row of.
enum class IfUnfenced {
    create,
    leave,  ///< Nobody has asked for it. The same where the row cannot be read.
};

/// Seals the database that `url` names for all of `claims`, on a connection that ends with this call. For a program
/// that works with the database by itself, under leases that somebody else keeps. False: nothing was sealed.
[[nodiscard]] Result<bool> seal_database(std::string_view url, const std::vector<FenceClaim>& claims,
                                         IfUnfenced if_unfenced, std::chrono::milliseconds patience,
                                         const Clock& clock);

/// Each in a file of its own.
[[nodiscard]] Result<std::unique_ptr<Fence>> sqlite_fence(sql::Session& session, const Clock& clock);
[[nodiscard]] Result<std::unique_ptr<Fence>> postgres_fence(sql::Session& session, const Clock& clock,
                                                            Deadline deadline);
[[nodiscard]] Result<std::unique_ptr<Fence>> mysql_fence(sql::Session& session, const Clock& clock, Deadline deadline);
[[nodiscard]] std::string sqlite_script();
[[nodiscard]] std::string postgres_script();
[[nodiscard]] std::string mysql_script();

}  // namespace holdfast::guards::fence
