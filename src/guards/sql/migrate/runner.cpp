#include "guards/sql/migrate/runner.hpp"

#include "guards/sql/migrate/blockers.hpp"
#include "guards/sql/migrate/lint.hpp"
#include "guards/sql/migrate/target.hpp"
#include "guards/sql/migrate/tokens.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace holdfast::guards::migrate {
namespace {

using sql::ErrorClass;
using std::chrono::milliseconds;

/// Between two tries of a statement whose lock was busy: statements that waited after it get their turn.
constexpr milliseconds pause{700};
constexpr milliseconds between_cancels{50};
constexpr int most_cancels = 400;

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
    for (const Statement& statement : *statements)
        if (is_transaction_command(statement.text, dialect))
            return refuse(statement.line,
                          "a file has a transaction of its own, which also holds its row of the ledger; take this out");
    return Script{&file, *std::move(statements)};
}

Result<std::unique_ptr<Runner>> Runner::open(RunnerOptions options) {
    auto session = options.connect();
    if (!session) return std::unexpected(session.error());
    const Deadline deadline = Deadline::in(*options.clock, std::chrono::seconds{20});
    auto table = LedgerTable::of(**session, deadline);
    if (!table) return std::unexpected(table.error());
    std::unique_ptr<Runner> runner(new Runner(std::move(options), *std::move(session), *std::move(table)));
    if (runner->options_.claim) {
        auto fence = fence::Fence::of(*runner->session_, *runner->options_.clock, deadline);
        if (!fence) return std::unexpected(fence.error());
        runner->fence_ = *std::move(fence);
        const auto patience = milliseconds{30'000};
        const Deadline patient = Deadline::in(*runner->options_.clock, patience * 2);
        if (auto sealed = runner->fence_->seal(*runner->options_.claim, patience, patient); !sealed)
            return std::unexpected(sealed.error());
    }
    if (auto made = runner->table_.create(*runner->session_, runner->soon()); !made)
        return std::unexpected(made.error());
    if (auto set = runner->set_limits(); !set) return std::unexpected(set.error());
    return runner;
}

Result<void> Runner::reconnect() {
    fence_.reset();
    session_.reset();
    auto session = options_.connect();
    if (!session) return std::unexpected(session.error());
    session_ = *std::move(session);
    if (options_.claim) {
        auto fence = fence::Fence::of(*session_, *options_.clock, soon());
        if (!fence) return std::unexpected(fence.error());
        fence_ = *std::move(fence);
    }
    return set_limits();
}

Result<void> Runner::set_limits() {
    if (table_.dialect() != SqlDialect::mysql) return {};
    const auto seconds = std::max<std::int64_t>(options_.lock_timeout.count() / 1000, 1);
    for (const char* const name : {"lock_wait_timeout", "innodb_lock_wait_timeout"}) {
        const auto set =
            session_->run({.text = fmt::format("SET SESSION {} = {}", name, seconds), .values = {}}, soon());
        if (!set) return std::unexpected(sql::error_of(set.error(), "set a limit for lock waits"));
    }
    return {};
}

Result<Ledger> Runner::ledger() { return table_.read(*session_, soon()); }

Result<void> Runner::begin() {
    if (fence_) return fence_->begin(*options_.claim, options_.ttl, soon());
    const char* const text = table_.dialect() == SqlDialect::sqlite ? "BEGIN IMMEDIATE" : "START TRANSACTION";
    const auto begun = session_->run({.text = text, .values = {}}, soon());
    if (!begun) return std::unexpected(sql::error_of(begun.error(), "begin a transaction"));
    return {};
}

Result<void> Runner::commit() {
    if (fence_) return fence_->commit(soon());
    const auto done = session_->run({.text = "COMMIT", .values = {}}, soon());
    if (done) return {};
    if (done.error().kind == ErrorClass::connection_lost)
        return fail(Errc::outcome_unknown,
                    "nobody knows whether the transaction was committed: " + done.error().message);
    rollback();
    return std::unexpected(sql::error_of(done.error(), "commit"));
}

void Runner::rollback() {
    if (fence_) return fence_->rollback();
    if (session_->is_usable()) static_cast<void>(session_->run({.text = "ROLLBACK", .values = {}}, soon()));
}

LedgerRow Runner::new_row(const Script& script, Status status) const {
    LedgerRow row;
    row.version = script.file->version;
    row.name = script.file->name;
    row.checksum = script.file->checksum;
    row.status = status;
    row.token = options_.claim ? options_.claim->token.value : 0;
    row.applied_by = options_.applied_by;
    row.applied_at = to_rfc3339(options_.clock->wall());
    row.statements_done = static_cast<std::int64_t>(script.statements.size());
    return row;
}

Runner::Stop Runner::failed(const Script& script, const Statement& statement, const sql::StatementError& error) const {
    const std::string place = fmt::format("{}:{}", printable(script.file->path), statement.line);
    if (options_.stop.stop_requested()) {
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
    std::atomic<bool> running{true};
    const auto owner = std::this_thread::get_id();
    // From the thread that hears of the loss. Repeated, because one that comes before the statement has no effect.
    const std::stop_callback cancel(options_.stop, [&] {
        for (int i = 0; running && i < most_cancels && std::this_thread::get_id() != owner; ++i) {
            session_->cancel();
            std::this_thread::sleep_for(between_cancels);
        }
    });
    if (options_.stop.stop_requested()) {
        running = false;
        return std::unexpected(failed(script, statement, {ErrorClass::cancelled, "", "not begun"}));
    }
    const auto done = session_->run({.text = statement.text, .values = {}}, Deadline::never());
    running = false;
    if (done) return {};
    return std::unexpected(failed(script, statement, done.error()));
}

std::string Runner::blockers_of(const Statement& statement) {
    return fmt::to_string(migrate::blockers_of(*session_, statement.text, soon()));
}

Result<void> Runner::repeat_while_busy(const Script& script, const std::function<Attempt()>& attempt) {
    const Deadline patient = Deadline::in(*options_.clock, options_.lock_patience);
    std::string told;
    while (true) {
        Attempt tried = attempt();
        if (tried) return {};
        Stop& stop = tried.error();
        if (!stop.lock_was_busy || options_.stop.stop_requested()) return std::unexpected(std::move(stop.error));
        const std::string blockers =
            stop.at == nullptr ? "another process that writes to the database" : blockers_of(*stop.at);
        if (patient.passed(*options_.clock)) {
            stop.error.message += "; in the way: " + blockers;
            return std::unexpected(std::move(stop.error));
        }
        std::string words = fmt::format("{}:{}: a lock was not granted in {}, trying again; in the way: {}",
                                        printable(script.file->path), stop.at == nullptr ? 1 : stop.at->line,
                                        to_words(options_.lock_timeout), blockers);
        if (options_.notice && words != told) options_.notice(words);
        told = std::move(words);
        for (auto slept = milliseconds{0}; slept < pause && !options_.stop.stop_requested(); slept += milliseconds{20})
            std::this_thread::sleep_for(milliseconds{20});
    }
}

Runner::Attempt Runner::run_in_transaction(const Script& script, const sql::Command& last) {
    const auto give_up = [this](Stop stop) {
        rollback();
        return Attempt(std::unexpected(std::move(stop)));
    };
    if (auto begun = begin(); !begun) {
        const bool busy = table_.dialect() == SqlDialect::sqlite && begun.error().code == Errc::store_unavailable;
        return std::unexpected(Stop{begun.error(), busy, nullptr});
    }
    const bool postgres = table_.dialect() == SqlDialect::postgres;
    if (postgres) {
        const auto set = session_->run(
            {.text = fmt::format("SET LOCAL lock_timeout = {}", options_.lock_timeout.count()), .values = {}}, soon());
        if (!set) return give_up({sql::error_of(set.error(), "set lock_timeout")});
    }
    for (const Statement& statement : script.statements)
        if (auto done = run(script, statement); !done) return give_up(std::move(done.error()));
    // The file may have become another role, which has no right on the ledger.
    if (postgres) {
        const auto ours = session_->run({.text = "RESET SESSION AUTHORIZATION", .values = {}}, soon());
        if (!ours) return give_up({sql::error_of(ours.error(), "become the connection's own user again")});
    }
    const auto noted = session_->run(last, soon());
    if (!noted) return give_up({sql::error_of(noted.error(), "write the ledger")});
    if (options_.stop.stop_requested())
        return give_up({{Errc::lock_expired, printable(script.file->path) + ": the lease was lost before the commit"}});
    if (auto committed = commit(); !committed) return std::unexpected(Stop{committed.error()});
    return {};
}

Result<LedgerRow> Runner::up(const Script& script, const std::optional<LedgerRow>& begun) {
    const bool by_statement = table_.dialect() == SqlDialect::mysql || !script.file->in_transaction;
    const auto since = options_.clock->boottime();
    LedgerRow row = new_row(script, Status::applied);
    if (by_statement) {
        row.status = Status::running;
        row.statements_done = begun ? begun->statements_done : 0;
        auto done = up_by_statement(script, std::move(row));
        if (auto left = finish_session(script); !left && done) return std::unexpected(left.error());
        return done;
    }
    const auto attempt = [&] {
        row.duration_ms = (options_.clock->boottime() - since).count();
        return run_in_transaction(script, table_.put(row));
    };
    const auto done = repeat_while_busy(script, attempt);
    if (!done) return std::unexpected(done.error());
    if (auto left = finish_session(script); !left) return std::unexpected(left.error());
    return row;
}

Result<void> Runner::down(const Script& script) {
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
    if (!session_->is_usable() || changes_session(script, table_.dialect())) return reconnect();
    return {};
}

Result<void> Runner::write(const LedgerRow& row) { return write({table_.put(row)}); }

Result<void> Runner::write(const std::vector<sql::Command>& commands) {
    if (auto begun = begin(); !begun) return begun;
    for (const sql::Command& command : commands) {
        const auto done = session_->run(command, soon());
        if (done) continue;
        rollback();
        return std::unexpected(sql::error_of(done.error(), "write the ledger"));
    }
    return commit();
}

}  // namespace holdfast::guards::migrate
