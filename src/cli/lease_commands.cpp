// What the holder of a lease does with it: renew, release, transfer, check.
#include "cli/command.hpp"
#include "cli/grant.hpp"
#include "cli/join.hpp"
#include "cli/places.hpp"
#include "cli/show.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

constexpr std::array one_name{Word{"NAME"}};

/// What the environment has on the lock `name`, the likeliest first: what is known to be on another store comes last.
Result<std::vector<InheritedLease>> inherited_here(Context& context, const LockName& name) {
    auto leases = inherited_leases(name);
    if (!leases || leases->size() < 2) return leases;
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    std::ranges::stable_partition(*leases, [&](const InheritedLease& lease) { return !is_elsewhere(lease, **store); });
    return leases;
}

/// What the caller may prove its lease on `name` with: --lease, or else every lease that the environment has on that
/// lock, and HOLDFAST_LEASE, which a shell may have set without a name.
Result<std::vector<Credentials>> leases_for(Context& context, const LockName& name) {
    const auto named = context.settings.lease();
    if (context.settings.on_command_line(opt::lease)) {
        if (!named) return std::unexpected(named.error());
        return std::vector{*named};
    }
    const auto inherited = inherited_here(context, name);
    if (!inherited) return std::unexpected(inherited.error());
    std::vector<Credentials> leases;
    for (const InheritedLease& lease : *inherited) leases.push_back(lease.as);
    if (leases.empty() && !named) return std::unexpected(named.error());
    if (named && std::ranges::find(leases, *named) == leases.end()) leases.push_back(*named);
    return leases;
}

/// Sends the request that `make` makes for the first lease that is not refused as somebody else's.
template <class Make>
Reply apply_as_holder(Context& context, const std::vector<Credentials>& leases, Make make) {
    std::optional<Error> first;
    for (const Credentials& as : leases) {
        auto reply = context.apply(make(as));
        if (reply || reply.error().code != Errc::lock_not_held) return reply;
        if (!first) first = reply.error();
    }
    return std::unexpected(*first);
}

constexpr Option revive{"revive", '\0', Takes::nothing, "",
                        "Also bring back a lease that ran out, if nobody took the lock."};
constexpr Option renew_ttl{"ttl", '\0', Takes::one, "D",
                           "How long the lease lasts from now; by default as long as before."};
constexpr std::array renew_options{opt::lease, renew_ttl, revive};

Result<int> run_renew(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto leases = leases_for(context, *name);
    if (!leases) return std::unexpected(leases.error());
    Result<Ttl> ttl = context.settings.ttl(context.settings.given(renew_ttl) ? renew_ttl : opt::ttl);
    if (!ttl) return std::unexpected(ttl.error());
    if (context.settings.given(renew_ttl)) {
        if (const auto terms = context.settings.terms_for_ttl(*name); !terms) return std::unexpected(terms.error());
    } else {
        // A default would cut a long lease short without a word.
        const auto status = context.inspect(*name);
        if (!status) return std::unexpected(status.error());
        if (status->lease) ttl = Ttl::of(status->lease->ttl).value_or(*ttl);
    }
    const auto renewed = apply_as_holder(context, *leases, [&](const Credentials& as) {
        return Renew{*name, as, *ttl, context.settings.on(revive) ? Revive::yes : Revive::no};
    });
    if (!renewed) return std::unexpected(renewed.error());
    const LockStatus& lock = renewed->lock;
    if (context.out.style().json) {
        context.out.document(json::lock(lock, *context.info()).done());
    } else if (!context.out.style().quiet) {
        context.out.line(fmt::format("{} is yours for {} more, until {}", printable(name->text()),
                                     to_words(lock.lease->expires_at - lock.as_of),
                                     to_rfc3339(lock.lease->expires_at)));
    }
    return 0;
}

constexpr Option release_if_held{"if-held", '\0', Takes::nothing, "",
                                 "Succeed also when this lease does not hold the lock any more."};
constexpr std::array release_options{opt::lease, release_if_held};

/// A repeated release is answered with the lock as it is, too; whoever has it, the caller has not.
std::string released_words(const LockStatus& lock) {
    if (lock.state != LockState::held) return " is released";
    return " is released, and " + who(lock.lease->holder) + " has it now";
}

Result<int> run_release(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto leases = leases_for(context, *name);
    if (!leases) return std::unexpected(leases.error());
    const auto released = apply_as_holder(context, *leases, [&](const Credentials& as) { return Release{*name, as}; });
    const bool nothing_there =
        !released && released.error().code == Errc::lock_not_held && context.settings.on(release_if_held);
    if (!released && !nothing_there) return std::unexpected(released.error());
    if (context.out.style().json) {
        json::Object document = released ? json::lock(released->lock, *context.info())
                                         : json::Object().set("name", json::Value::text(name->text()));
        context.out.document(document.set("released", json::Value::boolean(released.has_value())).done());
    } else if (!context.out.style().quiet) {
        context.out.line(printable(name->text()) +
                         (released ? released_words(released->lock) : " was not held by this lease"));
    }
    return 0;
}

constexpr Option to{"to", '\0', Takes::one, "HOLDER", "Who holds the lock from now on.", "", "", From::environment};
constexpr std::array transfer_options{opt::lease, to, opt::user, opt::reason, opt::format};

Result<int> run_transfer(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto leases = leases_for(context, *name);
    if (!leases) return std::unexpected(leases.error());
    if (!context.settings.given(to)) return fail(Errc::usage, "transfer needs --to, the new holder");
    Transfer request{.name = *name, .as = leases->front(), .to_as = Credentials::random()};
    request.to = Holder{context.settings.text(to), context.settings.text(opt::user)};
    request.reason = context.settings.text(opt::reason);
    const auto moved = apply_as_holder(context, *leases, [&](const Credentials& as) {
        request.as = as;
        return request;
    });
    if (!moved) return std::unexpected(moved.error());
    context.out.note(fmt::format("the lease that was yours has ended; pass the new one on to {}", who(request.to)));
    return hand_over(context, *moved, request.to_as);
}

constexpr Option token{"token", '\0', Takes::one,       "N", "The token that came with the grant.",
                       "",      "",   From::environment};
constexpr std::array check_options{token, opt::unless_held};

/// The tokens to check: --token, or those that the environment has on the lock `name`, each with its lock_id. Two locks
/// can carry the same number, so HOLDFAST_TOKEN counts only where HOLDFAST_LOCK does not name another lock.
Result<std::vector<Check>> checks_for(Context& context, const LockName& name) {
    std::vector<Check> checks;
    if (!context.settings.on_command_line(token)) {
        const auto inherited = inherited_here(context, name);
        if (!inherited) return std::unexpected(inherited.error());
        for (const InheritedLease& lease : *inherited)
            if (lease.token) checks.push_back({.name = name, .token = *lease.token, .lock_id = lease.as.lock_id});
        if (!checks.empty()) return checks;
        if (const auto other = variable("HOLDFAST_LOCK"); other && *other != name.text())
            return fail(Errc::usage,
                        fmt::format("check needs --token: HOLDFAST_TOKEN is that of {}, and the environment "
                                    "has no token of {}",
                                    printable(*other), name.text()));
    }
    if (!context.settings.given(token)) return fail(Errc::usage, "check needs --token, or HOLDFAST_TOKEN");
    const auto number = context.settings.number(token, FencingToken::limit - 1);
    if (!number) return std::unexpected(number.error());
    checks.push_back({.name = name, .token = FencingToken{*number}});
    return checks;
}

Result<int> run_check(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    auto checks = checks_for(context, *name);
    if (!checks) return std::unexpected(checks.error());
    const auto unless_held = context.settings.names(opt::unless_held);
    if (!unless_held) return std::unexpected(unless_held.error());
    Reply current = fail(Errc::lock_not_held, "");
    for (Check& request : *checks) {
        request.unless_held = *unless_held;
        auto reply = context.apply(request);
        const bool is_first = &request == &checks->front();
        const bool is_another =
            !reply && (reply.error().code == Errc::fencing_mismatch || reply.error().code == Errc::lock_not_held);
        if (is_first || !is_another) current = std::move(reply);
        if (!is_another) break;
    }
    if (!current) return std::unexpected(current.error());
    if (context.out.style().json) {
        context.out.document(
            json::lock(current->lock, *context.info()).set("current", json::Value::boolean(true)).done());
    } else if (!context.out.style().quiet) {
        context.out.line(
            fmt::format("token {} of {} is the current one", current->lock.token.value, printable(name->text())));
    }
    return 0;
}

}  // namespace

constinit const Command renew_command{
    "renew",
    "extend",
    "Hold on to a lease for longer",
    "Lets the lease last from now on for --ttl, or for as long as it was last granted. Never beyond its --max-hold. "
    "A lease that has run out is refused, because somebody may have come and gone since.",
    one_name,
    renew_options,
    run_renew};

constinit const Command release_command{
    "release",
    "",
    "Give a lock back",
    "Ends the lease, also one that ran out and that nobody took over. Another's lease is never touched.",
    one_name,
    release_options,
    run_release};

constinit const Command transfer_command{
    "transfer",
    "",
    "Hand a lease to another holder, without a gap",
    "Moves the lock to another holder in one step and prints the new lease, with a new token. The old lease ends.",
    one_name,
    transfer_options,
    run_transfer};

constinit const Command check_command{"check",
                                      "",
                                      "Is this token still the current one?",
                                      "Succeeds if the token belongs to the lease that holds NAME now. Fails with "
                                      "status 80 for a stale token, 76 if the lease "
                                      "ran out, 79 if nobody holds the lock. Changes nothing.",
                                      one_name,
                                      check_options,
                                      run_check};

}  // namespace holdfast::cli
