#pragma once

#include "guards/sql/migrate/ledger.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "sql/session.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::guards::migrate {

using sql::dialect_of;
using sql::is_sql_url;

/// Where migrations run.
struct Database {
    Database(std::string its_url, std::string its_schema = "")  // NOLINT(*-explicit-*): a URL alone names one, too.
        : url(std::move(its_url)), schema(std::move(its_schema)) {}

    std::string url;
    /// PostgreSQL: the whole search_path of each session. Empty: as the server and the URL have it.
    std::string schema;

    [[nodiscard]] bool operator==(const Database&) const = default;
};

/// For people, without secrets.
[[nodiscard]] std::string shown(const Database& database);

/// One schema of the database that `url` names. In MySQL, where a schema is a database, it is the same as its URL.
/// Refused with `usage` on SQLite.
[[nodiscard]] Result<Database> in_schema(std::string url, std::string schema);
/// The schemas whose names are LIKE `pattern`, sorted; those of the server itself and the one of our locks left out.
[[nodiscard]] Result<std::vector<std::string>> schemas_like(const std::string& url, const std::string& pattern,
                                                            const Clock& clock, Deadline deadline);

/// The store that has the lock of a database if no other is configured: the database itself, except for SQLite. There
/// it is a second file beside the database: while a migration writes, nobody else can write to the same file, so a
/// lease in it could not be renewed.
[[nodiscard]] Result<std::string> lock_store_of(const std::string& url);

/// A database and its ledger as they are. Creates nothing and writes nothing.
struct Look {
    std::unique_ptr<sql::Session> session;
    LedgerTable table;
    Ledger ledger;
};
[[nodiscard]] Result<Look> look_at(const Database& database, const Clock& clock, Deadline deadline);
/// The ledger alone; empty for a SQLite file that does not exist.
[[nodiscard]] Result<Ledger> ledger_of(const Database& database, const Clock& clock, Deadline deadline);

/// A connection to work with; a SQLite file that does not exist is made.
[[nodiscard]] Result<std::unique_ptr<sql::Session>> connect(const Database& database, const Clock& clock,
                                                            Deadline deadline);

/// The same to look; `config` for a SQLite file that does not exist.
[[nodiscard]] Result<std::unique_ptr<sql::Session>> connect_if_there(const Database& database, const Clock& clock,
                                                                     Deadline deadline);

/// The name of the lock. Gives the database its number at first use.
[[nodiscard]] Result<std::string> default_lock_of(const Database& database, const Clock& clock, Deadline deadline);

}  // namespace holdfast::guards::migrate
