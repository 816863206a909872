// What the holder of a lease does with it: renew, release, transfer, check.
#include "cli/command.hpp"
#include "cli/grant.hpp"
#include "cli/join.hpp"
#include "cli/show.hpp"
#include "client/store_identity.hpp"
#include "config/places.hpp"
#include "json/lock.hpp"
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

/// The stores to act on if HOLDFAST_STORE names several, as `run` sets it: those on which the environment has a lease
/// on `name`. Empty where one store is meant, as by a store, a lease or a token on the command line.
Result<std::vector<Store*>> stores_of_leases(Context& context, const LockName& name, const Option& proof) {
    const auto urls = context.settings.store_urls();
    if (!urls) return std::unexpected(urls.error());
    std::vector<Store*> ours;
    // What is named on the command line needs no list of leases.
    if (urls->size() == 1 || context.settings.on_command_line(opt::store) || context.settings.on_command_line(proof))
        return ours;
    const auto leases = inherited_leases(name);
    if (!leases) return std::unexpected(leases.error());
    if (leases->empty()) return ours;
    const auto stores = context.stores();
    if (!stores) return std::unexpected(stores.error());
    const auto ids = client::identify(*stores, context.clock);
    if (!ids) return std::unexpected(ids.error());
    for (std::size_t i = 0; i < stores->size(); ++i)
        if (std::ranges::find(*leases, (*ids)[i], &InheritedLease::store_id) != leases->end())
            ours.push_back((*stores)[i]);
    return ours;
}

/// What was done on one store. Without an outcome where there was nothing to do, and that was fine.
struct Done {
    std::optional<Outcome> outcome;
    StoreInfo store;
};

/// Calls `act` for the one store, or for each store that has a lease on `name`. The first failure decides, but keeps
/// nothing from being done on the others.
template <class Act>
Result<std::vector<Done>> on_each_store(Context& context, const LockName& name, const Option& proof, Act act) {
    const auto stores = stores_of_leases(context, name, proof);
    if (!stores) return std::unexpected(stores.error());
    std::vector<Done> done;
    std::optional<Error> first;
    const auto act_here = [&] {
        Result<std::optional<Outcome>> outcome = act();
        if (outcome)
            done.push_back({std::move(*outcome), *context.info()});
        else if (!first)
            first = std::move(outcome.error());
    };
    if (stores->empty()) {
        if (const auto one = context.settings.store_url(); !one) return std::unexpected(one.error());
        act_here();
    }
    for (const Store* store : *stores) {
        context.work_on(*store);
        act_here();
    }
    if (first) return std::unexpected(*first);
    return done;
}

/// A line for each store, or one document: that of the first, with all of them in `locks` if there are several.
template <class Document, class Line>
void tell(const Context& context, const std::vector<Done>& done, Document document, Line line) {
    if (context.out.style().json) {
        json::Object whole = document(done.front());
        std::vector<json::Value> all;
        for (const Done& each : done) all.push_back(document(each).done());
        if (all.size() > 1) whole.set("locks", json::Value::array(all));
        context.out.document(whole.done());
    } else if (!context.out.style().quiet) {
        for (const Done& each : done) context.out.line(line(each));
    }
}

constexpr Option revive{{"revive"}, '\0', "", "Also bring back a lease that ran out, if nobody took the lock."};
constexpr Option renew_ttl{
    {"ttl", Takes::one}, '\0', "D", "How long the lease lasts from now; by default as long as before."};
constexpr std::array renew_options{opt::lease, renew_ttl, revive};

/// How long a renewal asks for: --ttl, or as long as before. A default would cut a long lease short without a word.
Result<Ttl> ttl_of_renewal(Context& context, const LockName& name, const client::Terms& terms) {
    if (context.settings.given(renew_ttl)) return context.settings.ttl(renew_ttl);
    const auto status = context.inspect(name);
    if (!status) return std::unexpected(status.error());
    const auto before = status->lease ? Ttl::of(status->lease->ttl) : context.settings.ttl(opt::ttl);
    if (!before || !terms.longest_ttl) return before;
    return Ttl::of(std::min(before->time(), *terms.longest_ttl));
}

Result<int> run_renew(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto terms = context.settings.terms_for_renewal(*name);
    if (!terms) return std::unexpected(terms.error());
    const auto renewed = on_each_store(context, *name, opt::lease, [&]() -> Result<std::optional<Outcome>> {
        const auto leases = leases_for(context, *name);
        if (!leases) return std::unexpected(leases.error());
        const auto ttl = ttl_of_renewal(context, *name, *terms);
        if (!ttl) return std::unexpected(ttl.error());
        return apply_as_holder(context, *leases, [&](const Credentials& as) {
            return Renew{*name, as, *ttl, context.settings.on(revive) ? Revive::yes : Revive::no};
        });
    });
    if (!renewed) return std::unexpected(renewed.error());
    tell(
        context, *renewed, [](const Done& done) { return json::lock(done.outcome->lock, done.store); },
        [&](const Done& done) {
            const LockStatus& lock = done.outcome->lock;
            return fmt::format("{} is yours for {} more, until {}", printable(name->text()),
                               to_words(lock.lease->expires_at - lock.as_of), to_rfc3339(lock.lease->expires_at));
        });
    return 0;
}

constexpr Option release_if_held{
    {"if-held"}, '\0', "", "Succeed also when this lease does not hold the lock any more."};
constexpr std::array release_options{opt::lease, release_if_held};

/// A repeated release is answered with the lock as it is now, which another holder may have by then.
std::string released_words(const LockStatus& lock) {
    if (lock.state != LockState::held) return " is released";
    return " is released, and " + who(lock.lease->holder) + " has it now";
}

Result<int> run_release(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto released = on_each_store(context, *name, opt::lease, [&]() -> Result<std::optional<Outcome>> {
        const auto leases = leases_for(context, *name);
        if (!leases) return std::unexpected(leases.error());
        auto reply = apply_as_holder(context, *leases, [&](const Credentials& as) { return Release{*name, as}; });
        if (reply) return std::move(*reply);
        if (reply.error().code == Errc::lock_not_held && context.settings.on(release_if_held)) return std::nullopt;
        return std::unexpected(reply.error());
    });
    if (!released) return std::unexpected(released.error());
    tell(
        context, *released,
        [&](const Done& done) {
            return done.outcome ? json::released(done.outcome->lock, done.store) : json::not_released(*name);
        },
        [&](const Done& done) {
            return printable(name->text()) +
                   (done.outcome ? released_words(done.outcome->lock) : " was not held by this lease");
        });
    return 0;
}

constexpr Option to{{"to", Takes::one, "", "", From::environment}, '\0', "HOLDER", "Who holds the lock from now on."};
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

constexpr Option token{
    {"token", Takes::one, "", "", From::environment}, '\0', "N", "The token that came with the grant."};
/// Not from the environment: HOLDFAST_LOCK_ID is that of the lock around this command, which may be another one.
constexpr Option check_lock_id{{"lock-id", Takes::one, "", "", From::command_line},
                               '\0',
                               "LOCK_ID",
                               "The token must be that of this lease: in a restored store two can have one number."};
constexpr std::array check_options{token, check_lock_id, opt::unless_held};

/// The value of --lock-id, if it is given.
Result<std::optional<LockId>> expected_lock_id(const Context& context) {
    if (!context.settings.given(check_lock_id)) return std::nullopt;
    const auto lock_id = LockId::parse(context.settings.text(check_lock_id));
    if (!lock_id) return fail(Errc::usage, "--lock-id: a lock_id is a UUID, as status shows it");
    return *lock_id;
}

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
        if (const auto other = config::variable("HOLDFAST_LOCK"); other && *other != name.text())
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

/// Whether one of the tokens is the current one, on the store that the context works on.
Result<std::optional<Outcome>> check_here(Context& context, const LockName& name,
                                          const std::vector<LockName>& unless_held,
                                          const std::optional<LockId>& lock_id) {
    auto checks = checks_for(context, name);
    if (!checks) return std::unexpected(checks.error());
    Reply current = fail(Errc::lock_not_held, "");
    for (Check& request : *checks) {
        request.unless_held = unless_held;
        if (lock_id) request.lock_id = lock_id;
        auto reply = context.apply(request);
        const bool is_first = &request == &checks->front();
        const bool is_another =
            !reply && (reply.error().code == Errc::fencing_mismatch || reply.error().code == Errc::lock_not_held);
        if (is_first || !is_another) current = std::move(reply);
        if (!is_another) break;
    }
    if (!current) return std::unexpected(current.error());
    return std::move(*current);
}

Result<int> run_check(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto unless_held = context.settings.names(opt::unless_held);
    if (!unless_held) return std::unexpected(unless_held.error());
    const auto lock_id = expected_lock_id(context);
    if (!lock_id) return std::unexpected(lock_id.error());
    const auto current =
        on_each_store(context, *name, token, [&] { return check_here(context, *name, *unless_held, *lock_id); });
    if (!current) return std::unexpected(current.error());
    tell(
        context, *current, [](const Done& done) { return json::current(done.outcome->lock, done.store); },
        [&](const Done& done) {
            return fmt::format("token {} of {} is the current one", done.outcome->lock.token.value,
                               printable(name->text()));
        });
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
