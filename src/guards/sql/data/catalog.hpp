#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "sql/session.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// What a database says of the tables that are synced.
namespace holdfast::guards::data {

struct TableInfo {
    std::string name{};                              ///< As the configuration has it.
    std::string schema{};                            ///< Empty in SQLite.
    std::string plain{};                             ///< Without the schema.
    std::string quoted{};                            ///< For statements, with its schema.
    std::vector<std::string> columns{};              ///< Those that can be written.
    std::vector<std::vector<std::string>> unique{};  ///< The columns of each unique key, the primary key first.
    bool has_primary_key = false;
};

/// A foreign key between two tables that are synced, by their places in the list.
struct Reference {
    std::size_t from = 0;
    std::size_t to = 0;
    bool deferrable = false;
};

/// The table that a name stands for. A part before the first dot is a schema, except in SQLite. `config` where there is
/// none, or where it is no table, or one of Holdfast's own; `store_unsafe` where it has no transactions.
[[nodiscard]] Result<TableInfo> table_info(sql::Session& session, const std::string& name, Deadline deadline);

[[nodiscard]] Result<std::vector<Reference>> references_among(sql::Session& session,
                                                              const std::vector<TableInfo>& tables, Deadline deadline);

/// Tables that lose or change rows when rows of `table` are deleted: ON DELETE CASCADE and the like.
[[nodiscard]] Result<std::vector<std::string>> tables_changed_by_delete(sql::Session& session, const TableInfo& table,
                                                                        Deadline deadline);

/// The order of the tables in which each comes after those that it refers to. `config` if tables refer to each other in
/// a circle and the database cannot check that at the end; `names` are for that message.
[[nodiscard]] Result<std::vector<std::size_t>> parents_first(const std::vector<std::string>& names,
                                                             const std::vector<Reference>& references);

}  // namespace holdfast::guards::data
