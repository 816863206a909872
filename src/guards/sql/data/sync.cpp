#include "guards/sql/data/sync.hpp"

#include "guards/sql/migrate/blockers.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <thread>

namespace holdfast::guards::data {
namespace {

using sql::ErrorClass;
using sql::StatementError;
using std::chrono::milliseconds;

/// Between two tries when rows were locked.
constexpr milliseconds pause{500};
constexpr std::int64_t rows_between_looks = 4096;

std::string words_of(const StatementError& error) {
    return error.code.empty() ? printable(error.message) : fmt::format("{} ({})", printable(error.message), error.code);
}

/// True if the database refused the contents of a row, and not the way in which the rows were sent.
bool refuses_row_contents(ErrorClass kind) {
    return kind == ErrorClass::constraint || kind == ErrorClass::duplicate || kind == ErrorClass::other;
}

/// One try to bring the files into the tables, up to the commit.
class Attempt {
public:
    Attempt(FencedSession& fenced, const Source& source, const SyncPlan& plan, const SyncOptions& options)
        : fenced_(&fenced), source_(&source), plan_(&plan), options_(&options) {
        for (const TablePlan& table : plan) counts_.push_back({.source = table.source});
    }

    /// Outside of the transaction where a stage does not need it: it holds no lock of anybody then.
    [[nodiscard]] Result<void> before_transaction() { return is_postgres() ? Result<void>() : stage_all(); }
    [[nodiscard]] Result<void> in_transaction() {
        for (const std::string& text : transaction_settings(dialect()))
            if (auto set = run(text); !set) return std::unexpected(set.error());
        // A pooler may give the next transaction another session.
        if (is_postgres())
            if (auto staged = stage_all(); !staged) return staged;
        return {};
    }

    /// Rows that are replaced go first, children before parents; then rows come, parents before children; rows that
    /// left the files go last, when nobody refers to them any more.
    [[nodiscard]] Result<void> apply() {
        for (std::size_t at = plan_->size(); at-- > 0;)
            if ((*plan_)[at].strategy() == Strategy::truncate)
                if (auto done = run_counted(at, (*plan_)[at].statements.clear, counts_[at].deleted); !done) return done;
        for (std::size_t at = 0; at < plan_->size(); ++at)
            if (auto done = bring(at); !done) return done;
        for (std::size_t at = plan_->size(); at-- > 0;)
            if ((*plan_)[at].strategy() == Strategy::mirror)
                if (auto done = remove_rest(at); !done) return done;
        return expect_unchanged();
    }

    [[nodiscard]] Result<void> count() {
        for (std::size_t at = 0; at < plan_->size(); ++at) {
            const TablePlan& table = (*plan_)[at];
            const Statements& texts = table.statements;
            TableCounts& counts = counts_[at];
            if (table.strategy() == Strategy::truncate) {
                if (auto read = read_rows(at, nullptr); !read) return read;
                counts.inserted = counts.rows;
            }
            const bool takes_all =
                table.strategy() == Strategy::truncate || (table.strategy() == Strategy::mirror && !table.is_staged());
            if (auto done = ask_number(takes_all ? texts.count_all : "", counts.deleted); !done) return done;
            if (!table.is_staged()) continue;
            if (auto done = ask_number(texts.count_insert, counts.inserted); !done) return done;
            if (table.strategy() != Strategy::insert_missing)
                if (auto done = ask_number(texts.count_update, counts.updated); !done) return done;
            if (table.strategy() == Strategy::mirror)
                if (auto done = ask_number(texts.count_remove, counts.deleted); !done) return done;
        }
        return expect_unchanged();
    }

    /// In the order of the configuration.
    [[nodiscard]] std::vector<TableCounts> counts() {
        for (TableCounts& each : counts_) each.unchanged = each.rows - each.inserted - each.updated;
        std::ranges::sort(counts_, {}, [](const TableCounts& each) { return each.source; });
        return counts_;
    }

    [[nodiscard]] bool was_busy() const { return was_busy_; }
    /// The statement that met a locked row.
    [[nodiscard]] const std::string& busy_statement() const { return busy_statement_; }

private:
    [[nodiscard]] sql::Session& session() const { return fenced_->session(); }
    [[nodiscard]] SqlDialect dialect() const { return fenced_->session().dialect(); }
    [[nodiscard]] bool is_postgres() const { return dialect() == SqlDialect::postgres; }

    [[nodiscard]] Error stopped() const {
        return {Errc::lock_expired,
                "the sync was stopped, because the lease was lost or an end was asked for; nothing of it was written"};
    }

    /// Of a statement of ours that writes no row of a file.
    [[nodiscard]] Error error_of(const StatementError& error, const std::string& text, std::string_view doing) {
        if (fenced_->is_stopped()) return stopped();
        if (error.kind == ErrorClass::lock_busy || error.kind == ErrorClass::conflict) {
            was_busy_ = true;
            busy_statement_ = text;
        }
        return sql::error_of(error, doing);
    }
    /// Of one that writes rows: the database has the last word on what fits.
    [[nodiscard]] Error error_of_rows(const StatementError& error, const std::string& text, std::string_view where) {
        Error found = error_of(error, text, fmt::format("write {}", where));
        if (refuses_row_contents(error.kind) && !fenced_->is_stopped())
            found = {Errc::data_invalid, fmt::format("{}: {}", where, words_of(error))};
        return found;
    }

    [[nodiscard]] Result<SqlAnswer> run(const std::string& text) {
        if (fenced_->is_stopped()) return std::unexpected(stopped());
        auto answer = session().run({.text = text, .values = {}}, Deadline::never());
        if (!answer) return std::unexpected(error_of(answer.error(), text, "compare the files with the tables"));
        return *std::move(answer);
    }
    [[nodiscard]] Result<void> run_counted(std::size_t at, const std::string& text, std::int64_t& count) {
        if (text.empty()) return {};
        if (fenced_->is_stopped()) return std::unexpected(stopped());
        const auto answer = session().run({.text = text, .values = {}}, Deadline::never());
        if (!answer)
            return std::unexpected(
                error_of_rows(answer.error(), text, "the table " + printable((*plan_)[at].info.name)));
        count = answer->changed;
        return {};
    }
    [[nodiscard]] Result<void> ask_number(const std::string& text, std::int64_t& number) {
        if (text.empty()) return {};
        const auto answer = run(text);
        if (!answer) return std::unexpected(answer.error());
        number = std::stoll(answer->rows.at(0).at(0).value_or("0"));
        return {};
    }

    [[nodiscard]] Result<void> stage_all() {
        for (std::size_t at = 0; at < plan_->size(); ++at)
            if ((*plan_)[at].is_staged())
                if (auto staged = stage(at); !staged) return staged;
        return {};
    }

    [[nodiscard]] Result<void> stage(std::size_t at) {
        const TablePlan& table = (*plan_)[at];
        // That of an earlier try.
        for (const std::string& text : {table.statements.drop_stage, table.statements.make_stage})
            if (auto done = run(text); !done) return std::unexpected(done.error());
        if (auto written = write_rows(at, table.statements.stage, table.statements.stage_columns); !written)
            return written;
        if (auto done = run(table.statements.index_stage); !done) return std::unexpected(done.error());
        const auto twice = run(table.statements.duplicate);
        if (!twice) return std::unexpected(twice.error());
        if (twice->rows.empty()) return {};
        const auto row = [&](std::size_t column) {
            return static_cast<std::uint64_t>(std::stoull(twice->rows[0].at(column).value_or("0")));
        };
        return fail(Errc::data_invalid,
                    fmt::format("{}: the key is there already, at {}", source_->place_of(*table.source, row(1)),
                                source_->place_of(*table.source, row(0))));
    }

    [[nodiscard]] Result<void> bring(std::size_t at) {
        const TablePlan& table = (*plan_)[at];
        const Statements& texts = table.statements;
        if (table.strategy() == Strategy::truncate) {
            if (auto written = write_rows(at, texts.table, texts.columns); !written) return written;
            counts_[at].inserted = counts_[at].rows;
            return {};
        }
        // First, so that rows which come are not looked at again.
        if (table.strategy() != Strategy::insert_missing)
            if (auto done = run_counted(at, texts.update, counts_[at].updated); !done) return done;
        return run_counted(at, texts.insert, counts_[at].inserted);
    }

    [[nodiscard]] Result<void> remove_rest(std::size_t at) {
        const TablePlan& table = (*plan_)[at];
        // Files without a row have no column either.
        const std::string& text = table.is_staged() ? table.statements.remove : table.statements.clear;
        return run_counted(at, text, counts_[at].deleted);
    }

    /// Reads the rows of a table; into `writer`, if there is one. The number of the row is the last cell of a stage.
    [[nodiscard]] Result<void> read_rows(std::size_t at, sql::RowWriter* writer) {
        const TablePlan& table = (*plan_)[at];
        TableCounts& counts = counts_[at];
        counts.rows = 0;
        std::vector<Cell> cells;
        std::array<char, 24> digits{};
        std::optional<StatementError> refused;
        const auto visit = [&](const SourceRow& row) -> Result<void> {
            if (counts.rows % rows_between_looks == 0) {
                if (fenced_->is_stopped()) return std::unexpected(stopped());
                if (options_->progress) options_->progress(*table.source, counts.rows);
            }
            if (table.is_staged())
                for (const std::size_t key : table.key)
                    if (!row.cells[key])
                        return refuse(
                            row.file->path, row.line,
                            fmt::format("the key \"{}\" is NULL", printable(table.source->columns[key].name)));
            if (writer != nullptr) {
                cells.assign(row.cells.begin(), row.cells.end());
                if (table.is_staged()) {
                    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), counts.rows).ptr;
                    cells.emplace_back(std::string_view(digits.data(), end));
                }
                if (auto added = writer->add(cells); !added) {
                    refused = added.error();
                    return fail(Errc::usage, "refused");
                }
            }
            ++counts.rows;
            return {};
        };
        auto read = source_->read(*table.source, visit, digests_[table.source]);
        if (refused) return std::unexpected(refused_row(table, *writer, *refused));
        if (!read || writer == nullptr) return read;
        if (const auto finished = writer->finish(); !finished)
            return std::unexpected(refused_row(table, *writer, finished.error()));
        return {};
    }

    [[nodiscard]] Result<void> write_rows(std::size_t at, const std::string& into,
                                          const std::vector<std::string>& columns) {
        // Files without a row name no column.
        if (columns.empty()) return read_rows(at, nullptr);
        if (fenced_->is_stopped()) return std::unexpected(stopped());
        auto writer = session().write_rows(into, columns);
        if (!writer)
            return std::unexpected(
                error_of(writer.error(), into, "write the table " + printable((*plan_)[at].info.name)));
        return read_rows(at, writer->get());
    }

    [[nodiscard]] Error refused_row(const TablePlan& table, const sql::RowWriter& writer, const StatementError& error) {
        const auto row = writer.refused_row();
        const std::string where = row && refuses_row_contents(error.kind) ? source_->place_of(*table.source, *row)
                                                                          : "the table " + printable(table.info.name);
        return error_of_rows(error, table.statements.table, where);
    }

    /// The bytes that were written are those that were looked at.
    [[nodiscard]] Result<void> expect_unchanged() {
        std::vector<Sha256> digests;
        for (const TableSource& table : source_->tables()) digests.push_back(digests_[&table]);
        if (digest_of(digests) == options_->digest) return {};
        return fail(Errc::data_invalid, "the data files were changed while they were read; nothing was written");
    }

    FencedSession* fenced_;
    const Source* source_;
    const SyncPlan* plan_;
    const SyncOptions* options_;
    std::vector<TableCounts> counts_{};
    std::map<const TableSource*, Sha256> digests_{};
    bool was_busy_ = false;
    std::string busy_statement_{};
};

Result<void> set_up(FencedSession& fenced) {
    for (const std::string& text : session_settings(fenced.session().dialect()))
        if (const auto set = fenced.session().run({.text = text, .values = {}}, fenced.soon()); !set)
            return std::unexpected(sql::error_of(set.error(), "prepare the session"));
    return {};
}

/// One transaction. `work` is cancelled when the lease is lost; commit and rollback are not.
Result<void> in_transaction(FencedSession& fenced, Attempt& attempt, const std::function<Result<void>()>& begin,
                            Result<void> (Attempt::*work)()) {
    Result<void> done = fail(Errc::lock_expired, "the lease was lost before anything was written");
    static_cast<void>(fenced.run_cancellable([&] { done = attempt.before_transaction(); }));
    if (!done) return done;
    if (auto begun = begin(); !begun) return begun;
    done = fail(Errc::lock_expired, "the lease was lost before anything was written");
    static_cast<void>(fenced.run_cancellable([&] {
        done = attempt.in_transaction();
        if (done) done = (attempt.*work)();
    }));
    if (done && fenced.is_stopped()) done = fail(Errc::lock_expired, "the lease was lost before the commit");
    if (!done) fenced.rollback();
    return done;
}

/// `error`, of a transaction that was not committed; or that a newer holder has ended its session, which the fence
/// knows.
Error reason_of(FencedSession& fenced, const Error& error) {
    if (fenced.session().is_usable() || !fenced.claim() || fenced.is_stopped() || !fenced.reconnect()) return error;
    const auto begun = fenced.begin();
    if (begun) fenced.rollback();
    return !begun && begun.error().code == Errc::fencing_mismatch ? begun.error() : error;
}

}  // namespace

Result<std::vector<TableCounts>> sync(FencedSession& fenced, const Source& source, const SyncOptions& options) {
    if (auto ready = set_up(fenced); !ready) return std::unexpected(ready.error());
    const Deadline patient = Deadline::in(fenced.clock(), options.patience);
    std::string told;
    while (true) {
        // Again for each try: another process may have changed the tables meanwhile.
        const auto plan = plan_sync(fenced.session(), source, fenced.soon());
        if (!plan) return std::unexpected(plan.error());
        Attempt attempt(fenced, source, *plan, options);
        auto done = in_transaction(fenced, attempt, [&] { return fenced.begin(); }, &Attempt::apply);
        if (done) {
            auto committed = fenced.commit();
            if (committed) return attempt.counts();
            // Foreign keys that are checked at the end.
            if (committed.error().code == Errc::usage) committed.error().code = Errc::data_invalid;
            return std::unexpected(std::move(committed.error()));
        }
        const bool file_is_busy =
            fenced.session().dialect() == SqlDialect::sqlite && done.error().code == Errc::store_unavailable;
        const bool again = (attempt.was_busy() || file_is_busy) && fenced.session().is_usable();
        if (!again || fenced.is_stopped() || patient.passed(fenced.clock()))
            return std::unexpected(reason_of(fenced, done.error()));
        const std::string words = fmt::format(
            "rows were locked, trying again; in the way: {}",
            attempt.was_busy() ? migrate::blockers_of(fenced.session(), attempt.busy_statement(), fenced.soon())
                               : std::string("another process that writes to the database"));
        if (options.notice && words != told) options.notice(words);
        told = words;
        std::this_thread::sleep_for(pause);
    }
}

Result<std::vector<TableCounts>> preview(FencedSession& session, const Source& source, const SyncOptions& options) {
    if (auto ready = set_up(session); !ready) return std::unexpected(ready.error());
    const auto plan = plan_sync(session.session(), source, session.soon());
    if (!plan) return std::unexpected(plan.error());
    Attempt attempt(session, source, *plan, options);
    // Nothing is written, so that a read-only file will do.
    const auto begin = [&]() -> Result<void> {
        const auto begun = session.session().run({.text = "BEGIN", .values = {}}, session.soon());
        if (!begun) return std::unexpected(sql::error_of(begun.error(), "begin a transaction"));
        return {};
    };
    auto done = in_transaction(session, attempt, begin, &Attempt::count);
    if (!done) return std::unexpected(done.error());
    session.rollback();
    return attempt.counts();
}

}  // namespace holdfast::guards::data
