#pragma once

#include "guards/sql/data/source.hpp"
#include "guards/sql/data/statements.hpp"
#include "guards/sql/fenced_session.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::guards::data {

/// One table of a plan.
struct TablePlan {
    const TableSource* source = nullptr;
    TableInfo info{};
    std::vector<std::size_t> key{};  ///< Places in the columns of the source.
    Statements statements{};

    [[nodiscard]] Strategy strategy() const { return source->spec.strategy; }
    /// Whether its rows are compared with those that are there.
    [[nodiscard]] bool is_staged() const { return !statements.stage.empty(); }
};

/// Parents first, which rows refer to.
using SyncPlan = std::vector<TablePlan>;

/// Compares the files with the tables. Refused with `data_invalid` and the file's line for a column that the table does
/// not have; with `config` where a strategy does not fit its table. `source` must outlive the plan.
[[nodiscard]] Result<SyncPlan> plan_sync(sql::Session& session, const Source& source, Deadline deadline);

/// What became, or would become, of the rows of one table.
struct TableCounts {
    const TableSource* source = nullptr;
    std::int64_t rows = 0;  ///< In the files.
    std::int64_t inserted = 0;
    std::int64_t updated = 0;
    std::int64_t deleted = 0;
    std::int64_t unchanged = 0;  ///< Of those in the files.
};

struct SyncOptions {
    /// What `Source::check` said: the files must not have changed since.
    std::string digest{};
    /// Called with messages for a person that waits: which session is in the way.
    std::function<void(const std::string&)> notice{};
    /// Called now and then with a table and how many of its rows were read.
    std::function<void(const TableSource& table, std::int64_t rows)> progress{};
    std::chrono::milliseconds patience{5 * 60'000};  ///< With other sessions that have rows locked.
};

/// All tables in one transaction behind the fence. After an error nothing of it is there; `outcome_unknown` if the
/// answer to the commit was lost.
[[nodiscard]] Result<std::vector<TableCounts>> sync(FencedSession& fenced, const Source& source,
                                                    const SyncOptions& options);

/// What `sync` would do. Writes only temporary tables.
[[nodiscard]] Result<std::vector<TableCounts>> preview(FencedSession& session, const Source& source,
                                                       const SyncOptions& options);

}  // namespace holdfast::guards::data
