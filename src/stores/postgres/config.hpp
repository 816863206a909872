#pragma once

#include "sql/postgres/address.hpp"

#include <string>
#include <string_view>

namespace holdfast::stores::postgres {

/// Names without a schema are looked up among the server's own and nowhere else. Tables are named with their schema.
constexpr std::string_view safe_search_path = "pg_catalog, pg_temp";

/// The content of a URL: how to reach the server, and the store's schema there.
struct Settings : sql::postgres::Address {
    std::string schema;    ///< Validated: safe inside double quotes.
    bool session = false;  ///< Leases end with the connection of their holder.

    [[nodiscard]] std::string quoted_schema() const { return '"' + schema + '"'; }
};

/// Refused with `usage`; the message never repeats the URL.
[[nodiscard]] Result<Settings> settings_of(base::Url url);

}  // namespace holdfast::stores::postgres
