#include "base/module.hpp"
#include "base/url.hpp"
#include "sql/module.hpp"
#include "sql/session.hpp"
#include "sql/sqlite/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

// A program can link modules, and does not have to: a weak reference is null then.
extern "C" {
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_sql_module_postgres();
[[gnu::weak]] const holdfast::base::ModuleHead* holdfast_sql_module_mysql();
}

namespace holdfast::sql {
namespace {

struct Scheme {
    std::string_view name;
    std::string_view module = {};        ///< Empty: built in.
    base::ModuleEntry linked = nullptr;  ///< Null unless the program links it.
};
constexpr std::array schemes{Scheme{"sqlite"}, Scheme{"postgres", "postgres", holdfast_sql_module_postgres},
                             Scheme{"postgresql", "postgres", holdfast_sql_module_postgres},
                             Scheme{"mysql", "mysql", holdfast_sql_module_mysql},
                             Scheme{"mariadb", "mysql", holdfast_sql_module_mysql}};

/// What a store's URL may have besides. So a store's own URL can name the database that it is in.
constexpr std::array only_for_stores{"session", "sync", "prefix", "allow_lossy", "schema"};

const Scheme* scheme_of(std::string_view name) {
    const auto* const found = std::ranges::find(schemes, name, &Scheme::name);
    return found == schemes.end() ? nullptr : found;
}

Result<const Module*> find_module(const Scheme& scheme) {
    if (scheme.linked != nullptr) return static_cast<const Module*>(scheme.linked());
    const auto loaded = base::load_module("sql", scheme.module);
    if (!loaded) return std::unexpected(loaded.error());
    return static_cast<const Module*>(*loaded);
}

}  // namespace

bool is_sql_url(std::string_view url) {
    const auto colon = url.find(':');
    return colon != std::string_view::npos && scheme_of(url.substr(0, colon)) != nullptr;
}

SqlDialect dialect_of(std::string_view url) {
    const Scheme* const scheme = scheme_of(url.substr(0, url.find(':')));
    if (scheme == nullptr || scheme->module.empty()) return SqlDialect::sqlite;
    return scheme->module == "postgres" ? SqlDialect::postgres : SqlDialect::mysql;
}

Result<std::unique_ptr<Session>> open_session(std::string_view url, IfAbsent if_absent, const Clock& clock,
                                              Deadline deadline) {
    auto address = base::Url::parse(url);
    if (!address) return std::unexpected(address.error());
    const Scheme* const scheme = scheme_of(address->scheme);
    if (scheme == nullptr)
        return fail(Errc::usage, fmt::format("\"{}\" is no SQL database: its URL begins with sqlite:, postgres:// or "
                                             "mysql://",
                                             address->scheme));
    for (const char* const parameter : only_for_stores) address->parameters.erase(parameter);
    if (scheme->module.empty()) return sqlite::open_session(*address, if_absent, clock);
    const auto module = find_module(*scheme);
    if (!module) return std::unexpected(module.error());
    return (*module)->open(std::move(*address), clock, deadline);
}

}  // namespace holdfast::sql
