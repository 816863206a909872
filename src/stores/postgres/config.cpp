#include "stores/postgres/config.hpp"

#include <regex>

namespace holdfast::stores::postgres {

Result<Settings> settings_of(base::Url url) {
    const auto session = url.take_switch("session", false);
    if (!session) return std::unexpected(session.error());
    std::string schema = url.take("schema").value_or("holdfast");
    static const std::regex simple_name("[a-z_][a-z0-9_]{0,62}");
    if (!std::regex_match(schema, simple_name) || schema.starts_with("pg_"))
        return fail(Errc::usage,
                    "the parameter schema of the store's URL is a name of letters a-z, digits and _, not beginning "
                    "with a digit or pg_");
    auto address = sql::postgres::Address::of(std::move(url));
    if (!address) return std::unexpected(address.error());
    return Settings{std::move(*address), std::move(schema), *session};
}

}  // namespace holdfast::stores::postgres
