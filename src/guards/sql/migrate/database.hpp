#pragma once

#include "guards/sql/migrate/ledger.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "sql/session.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace holdfast::guards::migrate {

using sql::dialect_of;
using sql::is_sql_url;

/// For people, without secrets.
[[nodiscard]] std::string shown(std::string_view url);

/// The store that has the lock of a database if no other is configured: the database itself. Beside a SQLite file, and
/// not in it: while a migration writes, nobody else can, so the lease could not be renewed.
[[nodiscard]] Result<std::string> lock_store_of(const std::string& url);

/// A database and its ledger as they are. Creates nothing and writes nothing.
struct Look {
    std::unique_ptr<sql::Session> session;
    LedgerTable table;
    Ledger ledger;
};
[[nodiscard]] Result<Look> look_at(const std::string& url, const Clock& clock, Deadline deadline);
/// The ledger alone; empty for a SQLite file that does not exist.
[[nodiscard]] Result<Ledger> ledger_of(const std::string& url, const Clock& clock, Deadline deadline);

/// A connection to work with; a SQLite file that does not exist is made.
[[nodiscard]] Result<std::unique_ptr<sql::Session>> connect(const std::string& url, const Clock& clock,
                                                            Deadline deadline);

/// The name of the lock. Gives the database its number at first use.
[[nodiscard]] Result<std::string> default_lock_of(const std::string& url, const Clock& clock, Deadline deadline);

}  // namespace holdfast::guards::migrate
