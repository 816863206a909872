#pragma once

#include "guards/sql/fenced_session.hpp"
#include "guards/sql/migrate/ledger.hpp"
#include "guards/sql/migrate/placeholders.hpp"
#include "guards/sql/migrate/plan.hpp"
#include "guards/sql/migrate/splitter.hpp"
#include "sql/session.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::guards::migrate {

/// A file, cut and filled in: everything that can be wrong with it before a database is touched.
struct Script {
    const MigrationFile* file = nullptr;
    std::vector<Statement> statements{};

    /// Refused with `migration_failed` and the file's line.
    [[nodiscard]] static Result<Script> of(const MigrationFile& file, const Placeholders& values, SqlDialect dialect);
};

struct RunnerOptions {
    FencedSessionOptions session;
    std::string applied_by{};
    /// Called with messages for a person that waits: which session is in the way, what was resumed.
    std::function<void(const std::string&)> notice{};
    /// Told before each statement.
    std::function<void(const Script&, const Statement&)> progress{};
    /// A statement that waits for a lock makes all later ones wait, too. After this time it gives up and is tried
    /// again.
    std::chrono::milliseconds lock_timeout{2'000};
    std::chrono::milliseconds lock_patience{10 * 60'000};
};

/// Runs files behind the fence, each with its row of the ledger.
class Runner {
public:
    /// Connects, and seals for the claim: from then on nobody else can write behind the fence.
    [[nodiscard]] static Result<std::unique_ptr<Runner>> open(RunnerOptions options);
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner() = default;

    [[nodiscard]] sql::Session& session() { return fenced_.session(); }
    [[nodiscard]] const LedgerTable& table() const { return table_; }
    [[nodiscard]] Result<Ledger> ledger();
    /// For a statement of ours.
    [[nodiscard]] Deadline soon() const { return fenced_.soon(); }

    /// All of a file, or nothing where the database can take schema changes back. The row that it left.
    [[nodiscard]] Result<LedgerRow> up(const Script& script, const std::optional<LedgerRow>& begun);
    [[nodiscard]] Result<void> down(const Script& script);
    /// Writes one row behind the fence.
    [[nodiscard]] Result<void> write(const LedgerRow& row);
    /// The same for any statement of ours.
    [[nodiscard]] Result<void> write(const std::vector<sql::Command>& commands);

    /// What the statement under way did when its process died: the number of statements that are done.
    /// `migration_dirty` where that cannot be told.
    [[nodiscard]] Result<std::int64_t> settle(const Script& script, const LedgerRow& row);

private:
    Runner(RunnerOptions options, FencedSession fenced, LedgerTable table)
        : options_(std::move(options)), fenced_(std::move(fenced)), table_(std::move(table)) {}

    /// Why an attempt ended.
    struct Stop {
        Error error;
        bool lock_was_busy = false;  ///< Another session was in the way: it is tried again.
        const Statement* at = nullptr;
    };
    using Attempt = std::expected<void, Stop>;

    [[nodiscard]] Result<void> set_limits();
    /// Behind a pooler the session is somebody else's after the transaction.
    [[nodiscard]] Result<void> expect_no_traces(const Script& script);
    [[nodiscard]] LedgerRow new_row(const Script& script, Status status) const;

    /// One statement of a file, cancelled when the lease is lost.
    [[nodiscard]] Attempt run(const Script& script, const Statement& statement);
    [[nodiscard]] Result<void> repeat_while_busy(const Script& script, const std::function<Attempt()>& attempt);
    [[nodiscard]] Attempt run_in_transaction(const Script& script, const sql::Command& last);
    [[nodiscard]] Result<LedgerRow> up_by_statement(const Script& script, LedgerRow row);
    [[nodiscard]] Result<void> run_by_itself(const Script& script, LedgerRow& row, std::size_t at);
    [[nodiscard]] Attempt run_fenced_by_connection(const Script& script, const Statement& statement);
    [[nodiscard]] Attempt build_index(const Script& script, const Statement& statement, const std::string& index);
    [[nodiscard]] Result<void> run_with_row(const Script& script, LedgerRow& row, std::size_t at);
    [[nodiscard]] Result<void> finish_session(const Script& script);
    [[nodiscard]] std::string blockers_of(const Statement& statement);
    [[nodiscard]] Stop failed(const Script& script, const Statement& statement, const sql::StatementError& error) const;

    RunnerOptions options_;
    FencedSession fenced_;
    LedgerTable table_;
};

/// Whether the statement has to run outside a transaction, or MySQL commits around it.
[[nodiscard]] bool runs_by_itself(std::string_view statement, SqlDialect dialect);

}  // namespace holdfast::guards::migrate
