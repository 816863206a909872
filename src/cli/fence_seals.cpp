#include "cli/fence_seals.hpp"

#include "cli/option.hpp"
#include "guards/sql/fence.hpp"
#include "json/lease_list.hpp"
#include "sql/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace holdfast::cli {
namespace {

namespace fence = guards::fence;
using std::chrono::milliseconds;

constexpr std::string_view pg_options = "PGOPTIONS=";
constexpr milliseconds longest_wait{30'000};

bool is_postgres(std::string_view url) { return url.starts_with("postgres:") || url.starts_with("postgresql:"); }

/// One for each name: of several stores, that of the first.
std::vector<FenceClaim> claims_of(const std::vector<HeldLease>& leases) {
    std::vector<FenceClaim> claims;
    for (const auto& [lease, joined] : leases) {
        const bool known =
            std::ranges::any_of(claims, [&](const FenceClaim& claim) { return claim.name == lease.name; });
        if (!known && lease.token && lease.store_id)
            claims.push_back({lease.name, *lease.store_id, *lease.token, lease.as.lock_id});
    }
    return claims;
}

/// Half of what is left, so that the command has the other half.
milliseconds patience_of(const Context& context, const HoldGroup& group) {
    return std::clamp((group.deadline() - context.clock.boottime()) / 2, milliseconds{0}, longest_wait);
}

/// In PGOPTIONS a space ends a word, unless a backslash stands before it.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == ' ' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

Result<Sealed> seal_databases(const Context& context, const std::vector<HeldLease>& leases, const HoldGroup& group) {
    const auto stores = context.settings.store_urls();
    if (!stores) return std::unexpected(stores.error());
    const auto claims = claims_of(leases);
    auto result = Sealed::nothing;
    const auto seal = [&](const std::string& url, fence::IfUnfenced if_unfenced) -> Result<void> {
        const auto sealed = fence::seal_database(url, claims, if_unfenced, patience_of(context, group), context.clock);
        if (!sealed) return std::unexpected(sealed.error());
        if (*sealed) result = std::max(result, is_postgres(url) ? Sealed::in_postgres : Sealed::no_postgres);
        return {};
    };
    for (const std::string& url : context.settings.texts(opt::fence))
        if (auto sealed = seal(url, fence::IfUnfenced::create); !sealed) return std::unexpected(sealed.error());
    for (const std::string& url : *stores) {
        if (!is_postgres(url)) continue;
        if (auto sealed = seal(url, fence::IfUnfenced::leave); !sealed) return std::unexpected(sealed.error());
    }
    return result;
}

void carry_in_postgres(std::vector<std::string>& environment, const std::vector<InheritedLease>& leases) {
    std::vector<json::ListedLease> list;
    for (const InheritedLease& lease : leases)
        list.push_back({.store_id = lease.store_id, .name = lease.name, .token = lease.token, .as = lease.as});
    const std::string setting = "-c holdfast.leases=" + escaped(json::public_lease_list(list).written());
    const auto set = std::ranges::find_if(environment, [](const auto& entry) { return entry.starts_with(pg_options); });
    if (set == environment.end())
        environment.push_back(std::string(pg_options) + setting);
    else
        *set += " " + setting;
}

}  // namespace holdfast::cli
