#include "access/decision.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace holdfast::access {
namespace {

constexpr std::array table{
    EndpointRow{Endpoint::acquire, "acquire", Role::holder, Scope::lock},
    EndpointRow{Endpoint::renew, "renew", Role::holder, Scope::lock},
    EndpointRow{Endpoint::release, "release", Role::holder, Scope::lock},
    EndpointRow{Endpoint::cancel, "cancel", Role::holder, Scope::lock},
    EndpointRow{Endpoint::transfer, "transfer", Role::holder, Scope::lock},
    EndpointRow{Endpoint::check, "check", Role::viewer, Scope::lock},
    EndpointRow{Endpoint::fenced, "fenced", Role::holder, Scope::lock},
    EndpointRow{Endpoint::unlock, "unlock", Role::admin, Scope::lock},
    EndpointRow{Endpoint::expire, "expire", Role::holder, Scope::lock},
    EndpointRow{Endpoint::prune, "prune", Role::admin, Scope::lock},
    EndpointRow{Endpoint::repair, "repair", Role::admin, Scope::lock},
    EndpointRow{Endpoint::override_request, "override request", Role::holder, Scope::lock},
    EndpointRow{Endpoint::override_answer_by_lease, "override answer by lease", Role::holder, Scope::lock},
    EndpointRow{Endpoint::override_withdraw, "override withdraw", Role::holder, Scope::lock},
    EndpointRow{Endpoint::override_answer, "override answer", Role::admin, Scope::lock},
    EndpointRow{Endpoint::gate, "gate", Role::viewer, Scope::lock},
    EndpointRow{Endpoint::wait, "wait", Role::viewer, Scope::lock},
    EndpointRow{Endpoint::lock, "lock", Role::viewer, Scope::lock},
    EndpointRow{Endpoint::locks, "locks", Role::viewer, Scope::any_lock},
    EndpointRow{Endpoint::history, "history", Role::viewer, Scope::any_lock},
    EndpointRow{Endpoint::overrides, "overrides", Role::viewer, Scope::any_lock},
    EndpointRow{Endpoint::events, "events", Role::viewer, Scope::any_lock},
    EndpointRow{Endpoint::store, "store", Role::viewer, Scope::any_lock},
    EndpointRow{Endpoint::examine, "examine", Role::admin, Scope::store},
    EndpointRow{Endpoint::metrics, "metrics", Role::viewer, Scope::store},
    EndpointRow{Endpoint::session, "session", Role::viewer, Scope::any_lock},
};

template <class... Functions>
struct Overloaded : Functions... {
    using Functions::operator()...;
};

std::span<const LockName> excluded_by(const Request& request) {
    if (const auto* const acquire = std::get_if<Acquire>(&request)) return acquire->unless_held;
    if (const auto* const check = std::get_if<Check>(&request)) return check->unless_held;
    return {};
}

/// What a store takes as an actor.
constexpr std::size_t longest_actor = 255;

/// `alice from 10.0.0.7: web-3:ci:812:5521`: what is proven, then what is said.
std::string signed_text(const Identity& caller, const std::string& said) {
    std::string text = caller.text();
    const std::size_t room = text.size() + 2 < longest_actor ? longest_actor - text.size() - 2 : 0;
    if (said.empty() || room < 8) return end_of(text, longest_actor);
    return text + ": " + end_of(said, room);
}

}  // namespace

std::span<const EndpointRow> endpoint_table() { return table; }

const EndpointRow& row_of(Endpoint endpoint) { return table[static_cast<std::size_t>(endpoint)]; }

bool may(const Identity& caller, Endpoint endpoint, const LockName& name) {
    const EndpointRow& row = row_of(endpoint);
    return row.scope != Scope::store && caller.role_for(name) >= row.needs;
}

bool may(const Identity& caller, Endpoint endpoint) {
    const EndpointRow& row = row_of(endpoint);
    return (row.scope == Scope::store ? caller.role_for_all() : caller.highest_role()) >= row.needs;
}

Endpoint endpoint_of(const Request& request) {
    return std::visit(
        Overloaded{[](const Acquire&) { return Endpoint::acquire; }, [](const Renew&) { return Endpoint::renew; },
                   [](const Release&) { return Endpoint::release; }, [](const Cancel&) { return Endpoint::cancel; },
                   [](const Transfer&) { return Endpoint::transfer; }, [](const Break&) { return Endpoint::unlock; },
                   [](const Check&) { return Endpoint::check; }, [](const Ask&) { return Endpoint::override_request; },
                   [](const Answer& answer) {
                       return answer.by ? Endpoint::override_answer_by_lease : Endpoint::override_answer;
                   },
                   [](const Prune&) { return Endpoint::prune; }, [](const Expire&) { return Endpoint::expire; },
                   [](const Repair&) { return Endpoint::repair; },
                   [](const ReportFenced&) { return Endpoint::fenced; }},
        request);
}

Result<void> permitted(const Identity& caller, const Request& request) {
    const Endpoint endpoint = endpoint_of(request);
    if (!may(caller, endpoint, name_of(request))) return std::unexpected(denied(caller, endpoint));
    for (const LockName& name : excluded_by(request))
        if (!may(caller, Endpoint::lock, name)) return std::unexpected(denied(caller, Endpoint::lock));
    return {};
}

bool is_own(const Identity& caller, const Override& question) {
    return !caller.user.empty() && caller.user == question.asker.user;
}

Result<void> permitted_answer(const Identity& caller, const Override& question, Answer& answer) {
    const bool own = is_own(caller, question);
    if (answer.verdict == Verdict::deny && own && may(caller, Endpoint::override_withdraw, answer.name)) return {};
    if (!may(caller, Endpoint::override_answer, answer.name))
        return std::unexpected(denied(caller, Endpoint::override_answer));
    if (answer.verdict == Verdict::deny || !own) return {};
    if (answer.reason.empty())
        return fail(Errc::usage, "approving your own request needs a reason: it is marked in the audit log");
    answer.breaks_glass = true;
    return {};
}

void sign(const Identity& caller, Request& request) {
    // Without a proof there is nothing to put in the place of what is said, but where it came from.
    const bool is_proven = caller.auth != Auth::open;
    const auto sign_holder = [&](Holder& holder) {
        if (is_proven) holder.user = caller.user;
        if (holder.text.empty()) holder.text = caller.text();
    };
    const auto sign_actor = [&](std::string& actor) {
        if (is_proven || actor.empty()) actor = signed_text(caller, actor);
    };
    std::visit(Overloaded{[&](Acquire& r) { sign_holder(r.holder); }, [&](Ask& r) { sign_holder(r.holder); },
                          [&](ReportFenced& r) { sign_holder(r.holder); }, [&](Break& r) { sign_actor(r.actor); },
                          [&](Answer& r) { sign_actor(r.actor); }, [&](Prune& r) { sign_actor(r.actor); },
                          [&](Repair& r) { sign_actor(r.actor); }, [](auto&) {}},
               request);
    std::visit(
        [&](auto& r) {
            if constexpr (requires { r.sender; }) r.sender = {caller.user, caller.address};
        },
        request);
}

Error denied(const Identity& caller, Endpoint endpoint) {
    const EndpointRow& row = row_of(endpoint);
    return {Errc::denied,
            fmt::format("{} may not do this: \"{}\" needs the role {}{}",
                        caller.user.empty() ? "this caller" : printable(caller.user), row.name, name_of(row.needs),
                        row.scope == Scope::lock    ? " for that lock"
                        : row.scope == Scope::store ? " for all locks"
                                                    : "")};
}

}  // namespace holdfast::access
