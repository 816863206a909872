#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/sql.hpp"
#include "sql/error_class.hpp"

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// One connection to a database, the same for SQLite, PostgreSQL and MySQL. For guards, which run statements that users
/// wrote; the stores use the drivers of the folders beside this directly.
namespace holdfast::sql {

/// Why a statement did not succeed.
struct StatementError {
    ErrorClass kind = ErrorClass::other;
    std::string code{};     ///< Of the database: SQLSTATE, or the number of MySQL or SQLite. Empty if it said nothing.
    std::string message{};  ///< The database's own words, without secrets.
};

/// The error for a caller whose statement changed nothing. `doing` completes "cannot …".
[[nodiscard]] Error error_of(const StatementError& error, std::string_view doing);

/// A statement, and what is bound to its `$1`, `$2`…
struct Command {
    std::string text{};
    std::vector<SqlValue> values{};
};

/// What guards have to know of the server.
struct ServerKind {
    std::string version{};
    bool pooled = false;  ///< A pooler or proxy is in between: sessions are not ours alone, numbers are not theirs.
    bool galera = false;  ///< Several nodes take writes at once.
    bool tidb = false;
    bool mariadb = false;
};

/// Rows on their way into a table, as quickly as the database takes them. Before it is finished, its session runs no
/// other statement.
class RowWriter {
public:
    RowWriter(const RowWriter&) = delete;
    RowWriter& operator=(const RowWriter&) = delete;
    /// What was not finished is not all there: the transaction has to be rolled back.
    virtual ~RowWriter() = default;

    /// A row, with a cell for each column; an absent one is NULL. It may be sent later, and refused then.
    [[nodiscard]] virtual std::expected<void, StatementError> add(
        std::span<const std::optional<std::string_view>> cells) = 0;
    /// Sends what is left.
    [[nodiscard]] virtual std::expected<void, StatementError> finish() = 0;
    /// After an error: the number of the row that was refused, counted from 0, where that is known.
    [[nodiscard]] virtual std::optional<std::uint64_t> refused_row() const = 0;

protected:
    RowWriter() = default;
};

/// For one thread at a time, except `cancel`.
class Session {
public:
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    virtual ~Session() = default;

    [[nodiscard]] virtual SqlDialect dialect() const = 0;
    [[nodiscard]] virtual const ServerKind& server() const = 0;
    /// Of the session at the server, as `pg_terminate_backend` and `KILL` want it. 0: there is none.
    [[nodiscard]] virtual std::int64_t server_id() const = 0;
    /// For people, without secrets.
    [[nodiscard]] virtual const std::string& place() const = 0;

    /// Runs one statement. Text without values is sent as it is, so that a user's own text is never taken apart. With
    /// `Deadline::never()` it may take as long as it wants: what bounds it is `cancel`, or the server.
    ///
    /// After `connection_lost` nobody knows what a statement that commits has done.
    [[nodiscard]] virtual std::expected<SqlAnswer, StatementError> run(const Command& command, Deadline deadline) = 0;

    /// Runs several in one round trip where the database can, and stops at the first that is refused. The answers.
    [[nodiscard]] virtual std::expected<std::vector<SqlAnswer>, StatementError> run_all(
        std::span<const Command> commands, Deadline deadline);

    /// Texts for a table. Its name and those of its columns are SQL, quoted already.
    [[nodiscard]] virtual std::expected<std::unique_ptr<RowWriter>, StatementError> write_rows(
        const std::string& table, const std::vector<std::string>& columns) = 0;

    /// The statement that runs now fails with `cancelled`. From any thread. Without effect if none runs.
    virtual void cancel() = 0;

    /// False once the connection cannot be used any more.
    [[nodiscard]] virtual bool is_usable() const = 0;

protected:
    Session() = default;
};

/// A name as the database wants it in a statement, whatever is in it.
[[nodiscard]] std::string quoted_name(std::string_view name, SqlDialect dialect);

enum class IfAbsent {
    create,  ///< A SQLite file that is not there is made.
    refuse,
};

/// Connects to the database that `url` names, as a store's URL does; parameters that only stores have are ignored.
/// `clock` must outlive the session. Refused with `usage`, `denied`, `config` or `store_unavailable`.
[[nodiscard]] Result<std::unique_ptr<Session>> open_session(std::string_view url, IfAbsent if_absent,
                                                            const Clock& clock, Deadline deadline);

/// Of the database that `url` names, by its scheme; of SQLite if it is none.
[[nodiscard]] SqlDialect dialect_of(std::string_view url);

/// True if `url` names a SQL database, by its scheme.
[[nodiscard]] bool is_sql_url(std::string_view url);

}  // namespace holdfast::sql
