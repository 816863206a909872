#include "guards/sql/migrate/runner.hpp"

#include "guards/sql/migrate/blockers.hpp"
#include "guards/sql/migrate/lint.hpp"
#include "guards/sql/migrate/target.hpp"
#include "guards/sql/migrate/tokens.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

namespace holdfast::guards::migrate {
namespace {

using sql::ErrorClass;
using std::chrono::milliseconds;

/// Between two tries of a statement whose lock was busy: statements that waited after it get their turn.
constexpr milliseconds pause{700};

/// Only these say that another session was in the way. Texts are never looked at: they are translated.
bool is_lock_wait(const sql::StatementError& error, SqlDialect dialect) {
    constexpr std::array codes{"55P03", "40P01", "1205", "1213"};
    if (dialect == SqlDialect::sqlite) return error.kind == ErrorClass::lock_busy;
    return std::ranges::find(codes, error.code) != codes.end();
}

std::string first_line(std::string_view text) {
    return printable(text.substr(0, std::min({text.find('\n'), text.size(), std::size_t{120}})));
}

/// Settings and temporary tables of a file must not reach the next one.
bool changes_session(const Script& script, SqlDialect dialect) {
    return std::ranges::any_of(script.statements, [&](const Statement& statement) {
        const Tokens tokens(statement.text, dialect);
        return tokens.begins_with(
                   {"SET|USE|PRAGMA|ATTACH|DETACH|LOCK|RESET|LISTEN|DISCARD|SELECT|PREPARE|DECLARE|LOAD"}) ||
               tokens.begins_with({"CREATE", "LOCAL|GLOBAL?", "TEMP|TEMPORARY"}) ||
               (tokens.size() > 0 && tokens[0].kind == Token::Kind::hint);
    });
}

std::string by_code(const sql::StatementError& error) {
    return error.code.empty() ? printable(error.message) : fmt::format("{} ({})", printable(error.message), error.code);
}

}  // namespace

bool runs_by_itself(std::string_view statement, SqlDialect dialect) {
    if (dialect == SqlDialect::mysql) return commits_by_itself(statement, dialect);
    const Tokens tokens(statement, dialect);
    if (dialect == SqlDialect::sqlite) return tokens.begins_with({"PRAGMA|VACUUM|ATTACH|DETACH"});
    return tokens.has({"CONCURRENTLY"}) || tokens.begins_with({"VACUUM|CLUSTER|SET|RESET|LISTEN"}) ||
           tokens.begins_with({"REINDEX", "DATABASE|SYSTEM|SCHEMA"}) || tokens.begins_with({"ALTER", "SYSTEM"}) ||
           tokens.begins_with({"CREATE|DROP|ALTER", "DATABASE|TABLESPACE|SUBSCRIPTION"}) ||
           (tokens.begins_with({"ALTER", "TYPE"}) && tokens.has({"ADD", "VALUE"}));
}

Result<Script> Script::of(const MigrationFile& file, const Placeholders& values, SqlDialect dialect) {
    const auto refuse = [&](std::size_t line, std::string_view why) {
        return fail(Errc::migration_failed, fmt::format("{}:{}: {}", printable(file.path), line, why));
    };
    auto filled = fill_in(file.text, values, file.path);
    if (!filled) return std::unexpected(filled.error());
    auto statements = split(*filled, dialect);
    if (!statements) return refuse(statements.error().line, statements.error().message);
    if (statements->empty())
        return fail(
            Errc::migration_failed,
            fmt::format("{}: there is no statement in it; was it saved? One that is to do nothing says SELECT 1;",
                        printable(file.path)));
    for (const Statement& statement : *statements) {
        if (is_transaction_command(statement.text, dialect))
            return refuse(statement.line,
                          "a file has a transaction of its own, which also holds its row of the ledger; take this out");
        if (changes_our_tables(statement.text, dialect))
            return refuse(statement.line, "this changes a table of Holdfast itself, and nobody else may");
    }
    return Script{&file, *std::move(statements)};
}

Result<std::unique_ptr<Runner>> Runner::open(RunnerOptions options) {
    auto fenced = FencedSession::open(options.session);
    if (!fenced) return std::unexpected(fenced.error());
    auto table = LedgerTable::of(fenced->session(), fenced->soon());
    if (!table) return std::unexpected(table.error());
    std::unique_ptr<Runner> runner(new Runner(std::move(options), *std::move(fenced), *std::move(table)));
    if (auto made = runner->table_.create(runner->session(), runner->soon()); !made)
        return std::unexpected(made.error());
    if (auto set = runner->set_limits(); !set) return std::unexpected(set.error());
    return runner;
}

Result<void> Runner::set_limits() {
    if (table_.dialect() != SqlDialect::mysql) return {};
    const auto seconds = std::max<std::int64_t>(options_.lock_timeout.count() / 1000, 1);
    for (const char* const name : {"lock_wait_timeout", "innodb_lock_wait_timeout"}) {
        const auto set =
            session().run({.text = fmt::format("SET SESSION {} = {}", name, seconds), .values = {}}, soon());
        if (!set) return std::unexpected(sql::error_of(set.error(), "set a limit for lock waits"));
    }
    return {};
}

Result<Ledger> Runner::ledger() { return table_.read(session(), soon()); }

LedgerRow Runner::new_row(const Script& script, Status status) const {
    LedgerRow row;
    row.version = script.file->version;
    row.name = script.file->name;
    row.checksum = script.file->checksum;
    row.status = status;
    row.token = fenced_.claim() ? fenced_.claim()->token.value : 0;
    row.applied_by = options_.applied_by;
    row.applied_at = to_rfc3339(fenced_.clock().wall());
    row.statements_done = static_cast<std::int64_t>(script.statements.size());
    return row;
}

Runner::Stop Runner::failed(const Script& script, const Statement& statement, const sql::StatementError& error) const {
    const std::string place = fmt::format("{}:{}", printable(script.file->path), statement.line);
    if (fenced_.is_stopped()) {
        Error stopped{Errc::lock_expired,
                      fmt::format("{}: the statement was cancelled, because the lease was lost or an "
                                  "end was asked for: {}",
                                  place, by_code(error))};
        stopped.hint = "run it again; it goes on where it stopped";
        return {std::move(stopped), false, &statement};
    }
    if (error.kind == ErrorClass::connection_lost)
        return {{Errc::outcome_unknown, fmt::format("{}: the connection was lost: {}", place, by_code(error))},
                false,
                &statement};
    Error refused{Errc::migration_failed,
                  fmt::format("{}: {}; in: {}", place, by_code(error), first_line(statement.text))};
    return {std::move(refused), is_lock_wait(error, table_.dialect()), &statement};
}

Runner::Attempt Runner::run(const Script& script, const Statement& statement) {
    if (options_.progress) options_.progress(script, statement);
    std::expected<SqlAnswer, sql::StatementError> done;
    const bool begun = fenced_.run_cancellable(
        [&] { done = session().run({.text = statement.text, .values = {}}, Deadline::never()); });
    if (!begun) return std::unexpected(failed(script, statement, {ErrorClass::cancelled, "", "not begun"}));
    if (done) return {};
    return std::unexpected(failed(script, statement, done.error()));
}

std::string Runner::blockers_of(const Statement& statement) {
    return fmt::to_string(migrate::blockers_of(session(), statement.text, soon()));
}

Result<void> Runner::repeat_while_busy(const Script& script, const std::function<Attempt()>& attempt) {
    const Deadline patient = Deadline::in(fenced_.clock(), options_.lock_patience);
    std::string told;
    while (true) {
        Attempt tried = attempt();
        if (tried) return {};
        Stop& stop = tried.error();
        if (!stop.lock_was_busy || fenced_.is_stopped()) return std::unexpected(std::move(stop.error));
        const std::string blockers =
            stop.at == nullptr ? "another process that writes to the database" : blockers_of(*stop.at);
        if (patient.passed(fenced_.clock())) {
            stop.error.message += "; in the way: " + blockers;
            return std::unexpected(std::move(stop.error));
        }
        std::string words = fmt::format("{}:{}: a lock was not granted in {}, trying again; in the way: {}",
                                        printable(script.file->path), stop.at == nullptr ? 1 : stop.at->line,
                                        to_words(options_.lock_timeout), blockers);
        if (options_.notice && words != told) options_.notice(words);
        told = std::move(words);
        for (auto slept = milliseconds{0}; slept < pause && !fenced_.is_stopped(); slept += milliseconds{20})
            std::this_thread::sleep_for(milliseconds{20});
    }
}

Runner::Attempt Runner::run_in_transaction(const Script& script, const sql::Command& last) {
    const auto give_up = [this](Stop stop) {
        fenced_.rollback();
        return Attempt(std::unexpected(std::move(stop)));
    };
    if (auto begun = fenced_.begin(); !begun) {
        const bool busy = table_.dialect() == SqlDialect::sqlite && begun.error().code == Errc::store_unavailable;
        return std::unexpected(Stop{begun.error(), busy, nullptr});
    }
    const bool postgres = table_.dialect() == SqlDialect::postgres;
    if (postgres) {
        const auto set = session().run(
            {.text = fmt::format("SET LOCAL lock_timeout = {}", options_.lock_timeout.count()), .values = {}}, soon());
        if (!set) return give_up({sql::error_of(set.error(), "set lock_timeout")});
    }
    for (const Statement& statement : script.statements)
        if (auto done = run(script, statement); !done) return give_up(std::move(done.error()));
    // The file may have become another role, which has no right on the ledger.
    if (postgres) {
        const auto ours = session().run({.text = "RESET SESSION AUTHORIZATION", .values = {}}, soon());
        if (!ours) return give_up({sql::error_of(ours.error(), "become the connection's own user again")});
    }
    const auto noted = session().run(last, soon());
    if (!noted) return give_up({sql::error_of(noted.error(), "write the ledger")});
    if (fenced_.is_stopped())
        return give_up({{Errc::lock_expired, printable(script.file->path) + ": the lease was lost before the commit"}});
    if (auto committed = fenced_.commit(); !committed) return std::unexpected(Stop{committed.error()});
    return {};
}

Result<void> Runner::expect_no_traces(const Script& script) {
    if (!session().server().pooled) return {};
    for (const Statement& statement : script.statements)
        if (outlives_transaction(statement.text, table_.dialect()))
            return fail(
                Errc::migration_failed,
                fmt::format("{}:{}: {} is behind a pooler, and what this sets or makes would be left to the next "
                            "user of the session; use SET LOCAL or ON COMMIT DROP, or connect to the server "
                            "itself",
                            printable(script.file->path), statement.line, session().place()));
    return {};
}

Result<LedgerRow> Runner::up(const Script& script, const std::optional<LedgerRow>& begun) {
    if (auto expected = expect_no_traces(script); !expected) return std::unexpected(expected.error());
    const bool by_statement = table_.dialect() == SqlDialect::mysql || !script.file->in_transaction;
    const auto since = fenced_.clock().boottime();
    LedgerRow row = new_row(script, Status::applied);
    if (by_statement) {
        row.status = Status::running;
        row.statements_done = begun ? begun->statements_done : 0;
        auto done = up_by_statement(script, std::move(row));
        if (auto left = finish_session(script); !left && done) return std::unexpected(left.error());
        return done;
    }
    const auto attempt = [&] {
        row.duration_ms = (fenced_.clock().boottime() - since).count();
        return run_in_transaction(script, table_.put(row));
    };
    const auto done = repeat_while_busy(script, attempt);
    if (!done) return std::unexpected(done.error());
    if (auto left = finish_session(script); !left) return std::unexpected(left.error());
    return row;
}

Result<void> Runner::down(const Script& script) {
    if (auto expected = expect_no_traces(script); !expected) return expected;
    const sql::Command last = table_.remove(script.file->version);
    if (table_.dialect() != SqlDialect::mysql && script.file->in_transaction) {
        const auto done = repeat_while_busy(script, [&] { return run_in_transaction(script, last); });
        if (!done) return done;
        return finish_session(script);
    }
    for (const Statement& statement : script.statements) {
        const auto attempt = [&]() -> Attempt { return run_fenced_by_connection(script, statement); };
        if (auto done = repeat_while_busy(script, attempt); !done) {
            Error error = done.error();
            error.message += "; the statements before it were done, and stay";
            return std::unexpected(std::move(error));
        }
    }
    if (auto done = write({last}); !done) return done;
    return finish_session(script);
}

Result<void> Runner::finish_session(const Script& script) {
    if (session().is_usable() && !changes_session(script, table_.dialect())) return {};
    if (auto connected = fenced_.reconnect(); !connected) return connected;
    return set_limits();
}

Result<void> Runner::write(const LedgerRow& row) { return write({table_.put(row)}); }

Result<void> Runner::write(const std::vector<sql::Command>& commands) {
    if (auto begun = fenced_.begin(); !begun) return begun;
    for (const sql::Command& command : commands) {
        const auto done = session().run(command, soon());
        if (done) continue;
        fenced_.rollback();
        return std::unexpected(sql::error_of(done.error(), "write the ledger"));
    }
    return fenced_.commit();
}

}  // namespace holdfast::guards::migrate
