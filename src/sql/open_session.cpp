#include "base/module.hpp"
#include "base/url.hpp"
#include "sql/module.hpp"
#include "sql/session.hpp"
#include "sql/sqlite/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::sql {
namespace {

struct Scheme {
    std::string_view name;
    std::string_view module;  ///< Empty: built in.
};
constexpr std::array schemes{Scheme{"sqlite", ""}, Scheme{"postgres", "postgres"}, Scheme{"postgresql", "postgres"},
                             Scheme{"mysql", "mysql"}, Scheme{"mariadb", "mysql"}};

/// What a store's URL may have besides. So a store's own URL can name the database that it is in.
constexpr std::array only_for_stores{"session", "sync", "prefix", "allow_lossy", "schema"};

const Scheme* scheme_of(std::string_view name) {
    const auto* const found = std::ranges::find(schemes, name, &Scheme::name);
    return found == schemes.end() ? nullptr : found;
}

Result<const Module*> load(std::string_view name) {
    const auto found = base::load_module("sql", name, module_entry);
    if (!found) return std::unexpected(found.error());
    // What is found by name is an object pointer; POSIX allows this cast.
    const Module* const module = reinterpret_cast<ModuleEntry>(*found)();  // NOLINT
    if (module == nullptr || module->version != HOLDFAST_VERSION)
        return std::unexpected(base::module_of_another_version(fmt::format("the {} driver", name)));
    return module;
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

Result<std::unique_ptr<Session>> open_session(std::string_view text, IfAbsent if_absent, const Clock& clock,
                                              Deadline deadline) {
    auto url = base::Url::parse(text);
    if (!url) return std::unexpected(url.error());
    const Scheme* const scheme = scheme_of(url->scheme);
    if (scheme == nullptr)
        return fail(Errc::usage, fmt::format("\"{}\" is no SQL database: its URL begins with sqlite:, postgres:// or "
                                             "mysql://",
                                             url->scheme));
    for (const char* const parameter : only_for_stores) url->parameters.erase(parameter);
    if (scheme->module.empty()) return sqlite::open_session(std::move(*url), if_absent, clock);
    const auto module = load(scheme->module);
    if (!module) return std::unexpected(module.error());
    return (*module)->open(std::move(*url), clock, deadline);
}

}  // namespace holdfast::sql
