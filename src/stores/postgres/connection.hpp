#pragma once

#include "sql/postgres/connection.hpp"
#include "stores/postgres/config.hpp"

/// The store's connections are those of `sql/postgres`, with the session settings that a store needs.
namespace holdfast::stores::postgres {

using sql::postgres::Array;
using sql::postgres::Connection;
using sql::postgres::Fault;
using sql::postgres::notice_dead_peers;
using sql::postgres::RepeatedText;
using sql::postgres::Rows;
using sql::postgres::Statement;
using sql::postgres::Trip;
using sql::postgres::Type;

/// Opens a connection for a store. Refuses a standby, whose rows may be old, and an encoding that cannot write every
/// name.
[[nodiscard]] Result<std::unique_ptr<Connection>> connect(const Settings& settings, const base::CallBudget& budget);

/// The same, where reading is better than nothing: a standby, if no server takes changes.
[[nodiscard]] Result<std::unique_ptr<Connection>> connect_to_read(const Settings& settings,
                                                                  const base::CallBudget& budget);

/// Why a standby is of no use for a change.
[[nodiscard]] Error is_standby(const Settings& settings);

/// What a fault means for the caller, if nothing was changed. `doing` completes "cannot …".
[[nodiscard]] Error error_of(const Fault& fault, std::string_view doing);

}  // namespace holdfast::stores::postgres
