#include "access/grant.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace holdfast::access {
namespace {

constexpr std::array roles{Role::viewer, Role::holder, Role::admin};

std::optional<Role> role_named(std::string_view text) {
    const auto* const role = std::ranges::find_if(roles, [&](Role each) { return name_of(each) == text; });
    if (role == roles.end()) return std::nullopt;
    return *role;
}

}  // namespace

std::string_view name_of(Role role) {
    switch (role) {
        case Role::nobody: return "nobody";
        case Role::viewer: return "viewer";
        case Role::holder: return "holder";
        case Role::admin: return "admin";
    }
    return "";
}

std::string_view name_of(Auth auth) {
    switch (auth) {
        case Auth::open: return "open";
        case Auth::token: return "token";
        case Auth::cookie: return "cookie";
        case Auth::proxy: return "proxy";
    }
    return "";
}

Result<Grant> Grant::parse(std::string_view text) {
    const auto colon = text.find(':');
    const auto role = role_named(text.substr(0, colon));
    if (!role) return fail(Errc::usage, "a grant is viewer, holder or admin, and may name an area: holder:team-a");
    if (colon == std::string_view::npos) return Grant{*role, ""};
    const std::string_view area = text.substr(colon + 1);
    // "holder:$TEAM" with an unset variable must not become a grant for everything.
    if (area.empty()) return fail(Errc::usage, "a grant with a colon needs an area after it");
    // What can be no lock's name, with or without more after it, was meant as something else.
    const std::string_view name = area.ends_with('/') ? area.substr(0, area.size() - 1) : area;
    if (const auto parsed = LockName::parse(name); !parsed)
        return fail(Errc::usage, fmt::format("{} covers no lock: {}", printable(text), parsed.error().message));
    return Grant{*role, std::string(area)};
}

std::string Grant::text() const {
    return area.empty() ? std::string(name_of(role)) : fmt::format("{}:{}", name_of(role), area);
}

bool Grant::covers(const LockName& name) const {
    const std::string_view text = name.text();
    if (area.empty()) return true;
    if (!text.starts_with(area)) return false;
    return area.ends_with('/') ? text.size() > area.size() : text.size() == area.size() || text[area.size()] == '/';
}

Identity Identity::open(std::string address) {
    return {.auth = Auth::open, .address = std::move(address), .grants = {Grant{Role::admin, ""}}};
}

Role Identity::role_for(const LockName& name) const {
    Role role = Role::nobody;
    for (const Grant& grant : grants)
        if (grant.covers(name)) role = std::max(role, grant.role);
    return role;
}

Role Identity::highest_role() const {
    Role role = Role::nobody;
    for (const Grant& grant : grants) role = std::max(role, grant.role);
    return role;
}

Role Identity::role_for_all() const {
    Role role = Role::nobody;
    for (const Grant& grant : grants)
        if (grant.area.empty()) role = std::max(role, grant.role);
    return role;
}

std::string Identity::text() const {
    if (address.empty()) return user;
    return user.empty() ? address : fmt::format("{} from {}", user, address);
}

}  // namespace holdfast::access
