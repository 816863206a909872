// Files whose statements commit by themselves: all of them in MySQL, and those without a transaction elsewhere. The
// ledger counts statements, so that a file goes on where its process died.

#include "guards/sql/migrate/runner.hpp"
#include "guards/sql/migrate/target.hpp"
#include "guards/sql/migrate/tokens.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::guards::migrate {
namespace {

constexpr std::string_view not_to_be_told = "?";
constexpr std::string_view harmless = "again";

/// What the next statement is about to change, and how that looks, as one line of the ledger.
Result<std::string> state_before(sql::Session& session, const Statement& statement, SqlDialect dialect,
                                 Deadline deadline) {
    if (is_repeatable(statement.text, dialect)) return std::string(harmless);
    const auto target = target_of(statement.text, dialect);
    if (!target) return std::string(not_to_be_told);
    return look_at(session, *target, deadline);
}

bool is_setting(const Statement& statement, SqlDialect dialect) {
    return Tokens(statement.text, dialect).begins_with({"SET|USE|PRAGMA|ATTACH"});
}

}  // namespace

Result<std::int64_t> Runner::settle(const Script& script, const LedgerRow& row) {
    const auto next = static_cast<std::size_t>(row.statements_done);
    if (row.before.empty() || next >= script.statements.size()) return row.statements_done;
    const Statement& statement = script.statements[next];
    if (row.before == harmless) return row.statements_done;
    if (row.before != not_to_be_told) {
        const auto now = state_before(session(), statement, table_.dialect(), soon());
        if (!now) return std::unexpected(now.error());
        // An index that is there and cannot be used was begun and not built.
        const bool done = *now != row.before && *now != "invalid";
        return row.statements_done + (done ? 1 : 0);
    }
    Error error{Errc::migration_dirty,
                fmt::format("{}:{}: the process died beside this statement, and nothing tells whether it was done",
                            printable(script.file->path), statement.line)};
    error.hint =
        "look at the database, then say \"holdfast migrate repair --done\" or \"holdfast migrate repair --again\"";
    return std::unexpected(std::move(error));
}

Result<LedgerRow> Runner::up_by_statement(const Script& script, LedgerRow row) {
    const auto since = fenced_.clock().boottime();
    const auto count = script.statements.size();
    const auto first = static_cast<std::size_t>(row.statements_done);
    for (std::size_t i = 0; i < first && i < count; ++i) {
        if (!is_setting(script.statements[i], table_.dialect())) continue;
        if (auto set = run(script, script.statements[i]); !set) return std::unexpected(set.error().error);
    }
    for (std::size_t i = first; i < count; ++i) {
        const bool by_itself = runs_by_itself(script.statements[i].text, table_.dialect());
        const auto done = by_itself ? run_by_itself(script, row, i) : run_with_row(script, row, i);
        if (done) continue;
        // What was refused has left nothing; the statements before it stay.
        if (done.error().code == Errc::migration_failed && session().is_usable()) {
            row.status = Status::failed;
            row.before.clear();
            if (const auto noted = write(row); !noted) return std::unexpected(noted.error());
        }
        return std::unexpected(done.error());
    }
    row.status = Status::applied;
    row.before.clear();
    row.duration_ms = (fenced_.clock().boottime() - since).count();
    if (auto noted = write(row); !noted) return std::unexpected(noted.error());
    return row;
}

Result<void> Runner::run_by_itself(const Script& script, LedgerRow& row, std::size_t at) {
    const Statement& statement = script.statements[at];
    auto before = state_before(session(), statement, table_.dialect(), soon());
    if (!before) return std::unexpected(before.error());
    row.before = *std::move(before);
    row.statements_done = static_cast<std::int64_t>(at);
    if (auto noted = write(row); !noted) return noted;
    const auto index = concurrent_index_of(statement.text, table_.dialect());
    const auto done = repeat_while_busy(script, [&] {
        return index ? build_index(script, statement, *index) : run_fenced_by_connection(script, statement);
    });
    if (!done) return done;
    row.before.clear();
    row.statements_done = static_cast<std::int64_t>(at) + 1;
    return write(row);
}

Runner::Attempt Runner::run_fenced_by_connection(const Script& script, const Statement& statement) {
    const bool fenced = table_.dialect() != SqlDialect::sqlite;
    if (fenced)
        if (auto entered = fenced_.enter_connection(); !entered) return std::unexpected(Stop{entered.error()});
    Attempt done = run(script, statement);
    if (fenced) fenced_.leave_connection();
    return done;
}

Runner::Attempt Runner::build_index(const Script& script, const Statement& statement, const std::string& index) {
    const ChangeTarget target{ChangeTarget::Kind::index, index};
    const auto drop_left_over = [&]() -> Attempt {
        const auto state = look_at(session(), target, soon());
        if (!state) return std::unexpected(Stop{state.error()});
        if (*state != "invalid") return {};
        if (options_.notice)
            options_.notice(fmt::format("{} was begun and not finished: it is dropped", printable(index)));
        return run_fenced_by_connection(script, {"DROP INDEX CONCURRENTLY IF EXISTS " + index, statement.line});
    };
    // With IF NOT EXISTS a left-over would be taken for the index.
    if (auto dropped = drop_left_over(); !dropped) return dropped;
    if (auto built = run_fenced_by_connection(script, statement); !built) {
        if (session().is_usable() && !fenced_.is_stopped()) static_cast<void>(drop_left_over());
        return built;
    }
    const auto state = look_at(session(), target, soon());
    if (!state) return std::unexpected(Stop{state.error()});
    if (*state == "valid") return {};
    return std::unexpected(
        Stop{{Errc::migration_failed, fmt::format("{}:{}: the index {} was built and is not valid",
                                                  printable(script.file->path), statement.line, printable(index))}});
}

Result<void> Runner::run_with_row(const Script& script, LedgerRow& row, std::size_t at) {
    const Statement& statement = script.statements[at];
    LedgerRow after = row;
    after.statements_done = static_cast<std::int64_t>(at) + 1;
    after.before.clear();
    Script one{script.file, {statement}};
    const auto done = repeat_while_busy(one, [&] { return run_in_transaction(one, table_.put(after)); });
    if (!done) return done;
    row = std::move(after);
    return {};
}

}  // namespace holdfast::guards::migrate
