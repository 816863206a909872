#pragma once

#include "guards/sql/data/catalog.hpp"
#include "guards/sql/data/source.hpp"
#include "holdfast/sql.hpp"

#include <string>
#include <vector>

namespace holdfast::guards::data {

/// The statements for one table. `stage` is a temporary table with the rows of the files; all else compares it with
/// the table. Names are quoted, and no value is in them.
struct Statements {
    std::string table{};
    std::vector<std::string> columns{};  ///< Quoted.
    std::string stage{};
    std::vector<std::string> stage_columns{};  ///< The same, and the number of the row.
    std::string make_stage{};
    std::string drop_stage{};
    std::string index_stage{};  ///< Also where it only tells the planner how large the stage is.
    std::string duplicate{};    ///< The first and the last row of a key that is there twice.
    std::string clear{};        ///< DELETE without a condition: TRUNCATE commits in MySQL, and readers would see it.
    std::string insert{};
    std::string update{};  ///< Only what differs. Empty if there is nothing but the key.
    std::string remove{};
    std::string count_all{};
    std::string count_insert{};
    std::string count_update{};
    std::string count_remove{};
};

/// `number` tells several stages of a session apart. Without a key there is no more than `truncate` needs.
[[nodiscard]] Statements statements_for(SqlDialect dialect, const TableInfo& table,
                                        const std::vector<std::string>& columns, const std::vector<std::string>& key,
                                        std::size_t number);

/// Before the first transaction of a session: the database refuses what it would otherwise change to fit.
[[nodiscard]] std::vector<std::string> session_settings(SqlDialect dialect);
/// At the beginning of each.
[[nodiscard]] std::vector<std::string> transaction_settings(SqlDialect dialect);

}  // namespace holdfast::guards::data
