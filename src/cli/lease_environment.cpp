#include "cli/lease_environment.hpp"

#include "config/places.hpp"
#include "json/lease_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unistd.h>

namespace holdfast::cli {
namespace {

constexpr std::array per_lease{"HOLDFAST_LOCK", "HOLDFAST_LEASE", "HOLDFAST_TOKEN", "HOLDFAST_LOCK_ID",
                               "HOLDFAST_EXPIRES_AT"};

constexpr const char* all_leases = "HOLDFAST_LEASES";

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

std::optional<FencingToken> parse_token(std::string_view digits) {
    FencingToken token;
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, token.value);
    if (error != std::errc{} || end != last || token.value >= FencingToken::limit) return std::nullopt;
    return token;
}

/// Those of HOLDFAST_LOCK, HOLDFAST_LOCK_2…, up to the first that is missing.
std::vector<InheritedLease> numbered_leases() {
    std::vector<InheritedLease> leases;
    for (std::size_t place = 1;; ++place) {
        const auto get = [&](std::string_view name) {
            return config::variable(std::string(name) + suffix(place)).value_or("");
        };
        const auto name = LockName::parse(get("HOLDFAST_LOCK"));
        const auto as = Credentials::parse(get("HOLDFAST_LEASE"));
        if (!name || !as) return leases;
        leases.push_back({*name, *as, parse_token(get("HOLDFAST_TOKEN")), std::nullopt, get("HOLDFAST_EXPIRES_AT")});
    }
}

json::ListedLease listed(const InheritedLease& lease) {
    return {.store_id = lease.store_id, .name = lease.name, .token = lease.token, .as = lease.as};
}

}  // namespace

Result<std::vector<InheritedLease>> inherited_leases() {
    auto leases = numbered_leases();
    const auto text = config::variable(all_leases);
    if (!text) return leases;
    const auto list = json::parse_lease_list(*text);
    // Without the text: it holds secrets.
    if (!list)
        return fail(Errc::usage, fmt::format("{} is not a list of leases as holdfast run writes it; unset it, or pass "
                                             "it on unchanged",
                                             all_leases));
    for (const json::ListedLease& lease : *list) {
        const auto same = std::ranges::find_if(leases, [&](const InheritedLease& known) {
            return known.name == lease.name && known.as == lease.as && !known.store_id;
        });
        if (same != leases.end())
            same->store_id = lease.store_id;
        else
            leases.push_back({lease.name, lease.as, lease.token, lease.store_id, ""});
    }
    return leases;
}

Result<std::vector<InheritedLease>> inherited_leases(const LockName& name) {
    auto leases = inherited_leases();
    if (leases) std::erase_if(*leases, [&](const InheritedLease& lease) { return lease.name != name; });
    return leases;
}

std::vector<std::string> environment_with(const std::vector<InheritedLease>& leases,
                                          const config::StoreForChild& store) {
    std::vector<std::string> all;
    const bool is_told = store.urls || store.file || store.withheld;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (!name.starts_with("HOLDFAST_")) {
            all.emplace_back(text);
            continue;
        }
        if (is_lease_variable(name) || name == all_leases) continue;
        if (name == "HOLDFAST_STORE_WITHHELD") continue;
        if (is_told && (name == "HOLDFAST_STORE" || name == "HOLDFAST_STORE_FILE")) continue;
        all.emplace_back(text);
    }
    std::size_t place = 1;
    std::vector<json::ListedLease> list;
    for (const InheritedLease& lease : leases) {
        const std::string end = suffix(place++) + "=";
        all.push_back("HOLDFAST_LOCK" + end + lease.name.text());
        all.push_back("HOLDFAST_LEASE" + end + lease.as.reveal());
        all.push_back("HOLDFAST_LOCK_ID" + end + lease.as.lock_id.text());
        if (lease.token) all.push_back("HOLDFAST_TOKEN" + end + std::to_string(lease.token->value));
        if (!lease.expires_at.empty()) all.push_back("HOLDFAST_EXPIRES_AT" + end + lease.expires_at);
        list.push_back(listed(lease));
    }
    if (!list.empty()) all.push_back(fmt::format("{}={}", all_leases, json::lease_list(list).written()));
    if (store.urls) all.push_back("HOLDFAST_STORE=" + *store.urls);
    if (store.file) all.push_back("HOLDFAST_STORE_FILE=" + *store.file);
    if (store.withheld) all.push_back("HOLDFAST_STORE_WITHHELD=" + *store.withheld);
    return all;
}

}  // namespace holdfast::cli
