#pragma once

#include "base/url.hpp"

#include <map>
#include <string>

namespace holdfast::stores::postgres {

/// Where names without a schema are looked up: at the server's own, and nowhere else. Tables are named with theirs.
constexpr std::string_view safe_search_path = "pg_catalog, pg_temp";

/// What a URL says: how to reach the server, and where in it the store is.
struct Settings {
    std::string url;                             ///< For people, without secrets.
    std::map<std::string, std::string> options;  ///< What libpq is given, by its own names.
    std::string schema;                          ///< Validated: safe inside double quotes.
    bool session = false;                        ///< Leases end with the connection of their holder.

    /// How many servers the URL names, one of which takes writes.
    [[nodiscard]] std::size_t hosts() const;
    [[nodiscard]] std::string quoted_schema() const { return '"' + schema + '"'; }
};

/// Refused with `usage`; the message never repeats the URL.
[[nodiscard]] Result<Settings> settings_of(base::Url url);

}  // namespace holdfast::stores::postgres
