#include "sql/postgres/address.hpp"

#include "base/loopback.hpp"

#include <algorithm>
#include <libpq-fe.h>
#include <memory>
#include <set>
#include <vector>

namespace holdfast::sql::postgres {
namespace {

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start <= list.size();) {
        const auto comma = std::min(list.find(',', start), list.size());
        parts.push_back(list.substr(start, comma - start));
        start = comma + 1;
    }
    return parts;
}

/// On this host: nobody in between can read or answer.
bool is_local(const std::string& host) {
    return host.empty() || host.starts_with('/') || host.starts_with('@') || base::is_loopback(host);
}

/// What libpq takes from the environment where the URL says nothing, and every name that it knows.
struct Defaults {
    std::set<std::string> known;
    std::map<std::string, std::string> from_environment;
};

Defaults defaults() {
    Defaults found;
    const Options options(PQconndefaults(), PQconninfoFree);
    for (const PQconninfoOption* option = options.get(); option != nullptr && option->keyword != nullptr; ++option) {
        found.known.insert(option->keyword);
        const char* value = option->envvar == nullptr ? nullptr : std::getenv(option->envvar);
        if (value != nullptr) found.from_environment[option->keyword] = value;
    }
    return found;
}

/// Whether every server that libpq may ask for with these options is on this host. A service can name any host, and
/// libpq tells which one only when it has connected.
bool stays_on_this_host(const std::map<std::string, std::string>& options,
                        const std::map<std::string, std::string>& environment) {
    const auto value = [&](const std::string& name) -> std::string {
        if (const auto set = options.find(name); set != options.end()) return set->second;
        const auto set = environment.find(name);
        return set == environment.end() ? "" : set->second;
    };
    return value("service").empty() && std::ranges::all_of(split(value("host")), is_local) &&
           std::ranges::all_of(split(value("hostaddr")), is_local);
}

/// What libpq says of another port repeats it, and with a slash in a password that is a part of that.
bool are_ports(const std::string& list) {
    return std::ranges::all_of(split(list), [](const std::string& port) {
        return port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    });
}

/// User, host and database. The errors of libpq are not shown: they repeat parts of the URL.
Result<std::map<std::string, std::string>> place_of(const base::Url& url) {
    const auto refused =
        fail(Errc::usage, "a PostgreSQL store is named by a URL such as postgres://user@host:5432/database");
    if (!url.has_authority && !url.written.starts_with('/')) return refused;
    char* complaint = nullptr;
    const Options options(PQconninfoParse(("postgresql://" + url.written).c_str(), &complaint), PQconninfoFree);
    const std::unique_ptr<char, decltype(&PQfreemem)> unread(complaint, PQfreemem);
    if (!options) return refused;
    std::map<std::string, std::string> place;
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option)
        if (option->val != nullptr) place[option->keyword] = option->val;
    return place;
}

}  // namespace

std::size_t Address::hosts() const {
    const auto host = options.find("host");
    return host == options.end() ? 1 : split(host->second).size();
}

Result<Address> Address::of(base::Url url) {
    Address address{.url = url.redacted(), .options = {}};
    auto place = place_of(url);
    if (!place) return std::unexpected(place.error());
    address.options = std::move(*place);
    const Defaults known = defaults();
    while (!url.parameters.empty()) {
        auto parameter = url.parameters.extract(url.parameters.begin());
        if (!known.known.contains(parameter.key()))
            return fail(Errc::usage, "a postgres store has no parameter " + parameter.key());
        address.options[parameter.key()] = std::move(parameter.mapped());
    }
    if (const auto port = address.options.find("port"); port != address.options.end() && !are_ports(port->second))
        return fail(Errc::usage, "the port of a PostgreSQL store is a number; in a password, / is written %2F");

    const auto fallback = [&](const std::string& name, const std::string& value) {
        if (!known.from_environment.contains(name)) address.options.try_emplace(name, value);
    };
    // The environment's choice is repeated, because libpq would prefer that of a service's file.
    if (!stays_on_this_host(address.options, known.from_environment)) {
        const auto chosen = known.from_environment.find("sslmode");
        address.options.try_emplace("sslmode", chosen == known.from_environment.end() ? "verify-full" : chosen->second);
    }
    fallback("target_session_attrs", "read-write");
    fallback("application_name", "holdfast");
    // A peer that is silently gone is noticed well before the shortest usual lease has run out.
    fallback("keepalives_idle", "5");
    fallback("keepalives_interval", "2");
    fallback("keepalives_count", "3");
    fallback("tcp_user_timeout", "5000");
    // What is bound and read is UTF-8, whatever the environment says.
    address.options["client_encoding"] = "UTF8";
    return address;
}

}  // namespace holdfast::sql::postgres
