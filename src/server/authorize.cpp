#include "server/authorize.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::server {
namespace {

class OpenToAll final : public Authorizer {
public:
    [[nodiscard]] Result<Identity> authorize(const HttpRequest& /*request*/) override {
        return Identity{.rights = {{"", Role::admin}}};
    }
    [[nodiscard]] bool demands_proof() const override { return false; }
};

/// The role for each kind of request. A kind that is not named here does not compile.
struct Needed {
    Role operator()(const Check&) const { return Role::viewer; }
    Role operator()(const Acquire&) const { return Role::holder; }
    Role operator()(const Renew&) const { return Role::holder; }
    Role operator()(const Release&) const { return Role::holder; }
    Role operator()(const Cancel&) const { return Role::holder; }
    Role operator()(const Transfer&) const { return Role::holder; }
    Role operator()(const Expire&) const { return Role::holder; }
    Role operator()(const Ask&) const { return Role::holder; }
    Role operator()(const ReportFenced&) const { return Role::holder; }
    // The holder proves with the lease that it is the one who answers.
    Role operator()(const Answer& answer) const { return answer.by ? Role::holder : Role::admin; }
    Role operator()(const Break&) const { return Role::admin; }
    Role operator()(const Prune&) const { return Role::admin; }
    Role operator()(const Repair&) const { return Role::admin; }
};

/// Who acts: as the holder, or as the actor of what is done to somebody else. A name that was proved takes the place of
/// any that the client claims; without any name, the address that it called from has to do.
struct Signature {
    const Identity& who;
    const std::string& peer;

    void operator()(Acquire& r) const { sign(r.holder); }
    void operator()(Ask& r) const { sign(r.holder); }
    void operator()(ReportFenced& r) const { sign(r.holder); }
    void operator()(Break& r) const { sign(r.actor); }
    void operator()(Answer& r) const { sign(r.actor); }
    void operator()(Prune& r) const { sign(r.actor); }
    void operator()(Repair& r) const { sign(r.actor); }
    // These name nobody, or somebody else.
    void operator()(Renew&) const {}
    void operator()(Release&) const {}
    void operator()(Cancel&) const {}
    void operator()(Transfer&) const {}
    void operator()(Expire&) const {}
    void operator()(Check&) const {}

    void sign(Holder& holder) const {
        if (!who.user.empty()) holder.user = who.user;
        if (holder.text.empty()) holder.text = holder.user.empty() ? peer : holder.user;
    }
    void sign(std::string& actor) const {
        if (!who.user.empty() || actor.empty()) actor = who.user.empty() ? peer : who.user;
    }
};

}  // namespace

std::string_view name_of(Role role) {
    switch (role) {
        case Role::viewer: return "viewer";
        case Role::holder: return "holder";
        case Role::admin: return "admin";
        case Role::nobody: break;
    }
    return "nobody";
}

Role Identity::role_for(const LockName& name) const {
    Role role = Role::nobody;
    for (const Right& right : rights)
        if (name.text().starts_with(right.prefix)) role = std::max(role, right.role);
    return role;
}

Role Identity::highest_role() const {
    Role role = Role::nobody;
    for (const Right& right : rights) role = std::max(role, right.role);
    return role;
}

bool Identity::sees_all_of(std::string_view prefix) const {
    return std::ranges::any_of(
        rights, [&](const Right& right) { return right.role >= Role::viewer && prefix.starts_with(right.prefix); });
}

std::unique_ptr<Authorizer> open_to_all() { return std::make_unique<OpenToAll>(); }

Role role_needed(const Request& request) { return std::visit(Needed{}, request); }

Result<void> permit(const Identity& who, Role needed, const LockName& name) {
    if (who.role_for(name) >= needed) return {};
    return fail(Errc::denied, fmt::format("this needs the role {} for {}", name_of(needed), printable(name.text())));
}

Result<void> permit(const Identity& who, const Request& request) {
    if (auto allowed = permit(who, role_needed(request), name_of(request)); !allowed) return allowed;
    // What excludes a lock is told of it, when it is refused.
    const auto* const acquire = std::get_if<Acquire>(&request);
    const auto* const check = std::get_if<Check>(&request);
    const std::vector<LockName> none;
    for (const LockName& other : acquire ? acquire->unless_held : check ? check->unless_held : none)
        if (auto allowed = permit(who, Role::viewer, other); !allowed) return allowed;
    return {};
}

void sign(Request& request, const Identity& who, const std::string& peer) { std::visit(Signature{who, peer}, request); }

}  // namespace holdfast::server
