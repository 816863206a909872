#pragma once

#include "guards/sql/migrate/plan.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "sql/session.hpp"

#include <optional>
#include <string>

namespace holdfast::guards::migrate {

/// The tables that migrations keep in the database: `holdfast_migrations`, and `holdfast_identity` with the number that
/// the database was given at first use. Every name is written with its schema, so that no `search_path` and no USE of a
/// file leads elsewhere.
class LedgerTable {
public:
    /// In the schema that the session begins in; creates nothing. `config` if there is none.
    [[nodiscard]] static Result<LedgerTable> of(sql::Session& session, Deadline deadline);

    /// Empty where there is no table.
    [[nodiscard]] Result<Ledger> read(sql::Session& session, Deadline deadline) const;
    /// Two that do so at once both succeed.
    [[nodiscard]] Result<void> create(sql::Session& session, Deadline deadline) const;

    /// A row, new or in the place of the one with its version.
    [[nodiscard]] sql::Command put(const LedgerRow& row) const;
    [[nodiscard]] sql::Command remove(const std::string& version) const;

    /// The random number of this database; absent before its first use.
    [[nodiscard]] Result<std::optional<std::string>> identity(sql::Session& session, Deadline deadline) const;
    [[nodiscard]] Result<std::string> make_identity(sql::Session& session, Deadline deadline) const;

    /// Of the schema; empty in SQLite, which has none.
    [[nodiscard]] const std::string& schema() const { return schema_; }
    [[nodiscard]] SqlDialect dialect() const { return dialect_; }
    /// `"public".` or `` `app`. ``
    [[nodiscard]] const std::string& prefix() const { return prefix_; }
    [[nodiscard]] Result<bool> has_table(sql::Session& session, std::string_view name, Deadline deadline) const;
    /// Creates one unless it is there; other processes may do the same at once.
    [[nodiscard]] Result<void> create_table(sql::Session& session, std::string_view name, std::string_view columns,
                                            Deadline deadline) const;

private:
    LedgerTable(SqlDialect dialect, std::string schema);

    SqlDialect dialect_;
    std::string schema_;
    std::string prefix_;
};

/// The name of the lock of all migrations of that database and schema, whatever the schema is called.
[[nodiscard]] std::string lock_name_of(std::string_view identity, std::string_view schema);

}  // namespace holdfast::guards::migrate
