#include "cli/lease_environment.hpp"

#include "cli/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unistd.h>

namespace holdfast::cli {
namespace {

constexpr std::array per_lease{"HOLDFAST_LOCK", "HOLDFAST_LEASE", "HOLDFAST_TOKEN", "HOLDFAST_LOCK_ID",
                               "HOLDFAST_EXPIRES_AT"};

/// `_3` for the third, nothing for the first.
std::string suffix(std::size_t place) { return place == 1 ? "" : fmt::format("_{}", place); }

bool is_lease_variable(std::string_view name) {
    return std::ranges::any_of(per_lease, [&](std::string_view base) {
        if (!name.starts_with(base)) return false;
        const std::string_view rest = name.substr(base.size());
        return rest.empty() ||
               (rest.size() > 1 && rest[0] == '_' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos);
    });
}

}  // namespace

std::vector<InheritedLease> inherited_leases() {
    std::vector<InheritedLease> leases;
    for (std::size_t place = 1;; ++place) {
        const auto get = [&](std::string_view name) {
            return variable(std::string(name) + suffix(place)).value_or("");
        };
        const auto name = LockName::parse(get("HOLDFAST_LOCK"));
        const auto as = Credentials::parse(get("HOLDFAST_LEASE"));
        if (!name || !as) return leases;
        leases.push_back({*name, *as, get("HOLDFAST_TOKEN"), get("HOLDFAST_EXPIRES_AT")});
    }
}

std::vector<std::string> environment_with(const std::vector<InheritedLease>& leases,
                                          const std::optional<std::string>& store, bool hide_store) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (is_lease_variable(name)) continue;
        if (name == "HOLDFAST_STORE" && (store || hide_store)) continue;
        all.emplace_back(text);
    }
    std::size_t place = 1;
    for (const InheritedLease& lease : leases) {
        const std::string end = suffix(place++) + "=";
        all.push_back("HOLDFAST_LOCK" + end + lease.name.text());
        all.push_back("HOLDFAST_LEASE" + end + lease.as.reveal());
        all.push_back("HOLDFAST_LOCK_ID" + end + lease.as.lock_id.text());
        if (!lease.token.empty()) all.push_back("HOLDFAST_TOKEN" + end + lease.token);
        if (!lease.expires_at.empty()) all.push_back("HOLDFAST_EXPIRES_AT" + end + lease.expires_at);
    }
    if (store) all.push_back("HOLDFAST_STORE=" + *store);
    return all;
}

}  // namespace holdfast::cli
