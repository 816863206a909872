#include "cli/run_locks.hpp"

#include "client/store_identity.hpp"
#include "guards/run/supervisor.hpp"
#include "values/text.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

bool is_joined(const JoinedLeases& joined, const Store& store, const LockName& name) {
    return std::ranges::any_of(joined, [&](const client::JoinedLease& lease) {
        return &lease.store() == &store && lease.granted().lock.name == name;
    });
}

/// The locks that are to be taken: a store, and a place in `plan.names`.
std::vector<std::pair<Store*, std::size_t>> missing(const Plan& plan, const std::vector<Store*>& stores,
                                                    const JoinedLeases& joined) {
    std::vector<std::pair<Store*, std::size_t>> rest;
    for (std::size_t i = 0; i < plan.names.size(); ++i)
        for (Store* store : stores)
            if (!is_joined(joined, *store, plan.names[i])) rest.emplace_back(store, i);
    return rest;
}

/// How the lock `plan.names[i]` on `store` is held, if it is renewed for `ttl`.
HoldOptions options_for(const Context& context, const Plan& plan, Store& store, std::size_t i, Ttl ttl,
                        const WaitHooks& hooks) {
    const client::Terms& terms = plan.terms[i];
    HoldOptions options{.holder = plan.holder};
    options.operation = plan.operation;
    options.reason = context.settings.text(opt::reason);
    options.ttl = ttl;
    options.max_hold = terms.max_hold;
    options.unless_held = terms.unless_held;
    options.meta = plan.meta;
    options.wait = terms.wait;
    options.cancel = hooks.cancel;
    // Only this thread holds, and `hold_all` keeps to the order.
    options.order_check = OrderCheck::off;
    options.renew = terms.renew;
    options.renew_from = RenewFrom::the_call;
    options.renew_interval = std::min(terms.renew_interval.value_or(HoldOptions::forever),
                                      guards::run::renew_interval(ttl.time(), plan.grace));
    options.time_to_stop = plan.grace;
    options.observer = [blocked = hooks.blocked, &store](const HoldEvent& event) {
        if (event.kind == HoldEventKind::blocked && event.cause) blocked(*event.cause, store, event.name);
    };
    options.clock = &context.clock;
    return options;
}

}  // namespace

Result<JoinedLeases> join_outer(Context& context, const Plan& plan, const std::vector<Store*>& stores,
                                const std::vector<InheritedLease>& inherited) {
    JoinedLeases joined;
    const auto asked_for = [&](const InheritedLease& lease) {
        return std::ranges::find(plan.names, lease.name) != plan.names.end();
    };
    if (std::ranges::none_of(inherited, asked_for)) return joined;
    // One store under two names would seem to hold the lease twice.
    if (stores.size() > 1)
        if (const auto ids = client::identify(stores, context.clock); !ids) return std::unexpected(ids.error());
    for (std::size_t i = 0; i < plan.names.size(); ++i) {
        for (Store* store : stores) {
            const client::JoinTerms terms{plan.terms[i].unless_held, std::nullopt, plan.terms[i].renew};
            auto lease = join(context, *store, plan.names[i], terms, inherited);
            if (!lease) return std::unexpected(lease.error());
            if (*lease) joined.push_back(std::move(**lease));
        }
    }
    return joined;
}

milliseconds shortest_lease(const Plan& plan, const std::vector<Store*>& stores, const JoinedLeases& joined) {
    milliseconds shortest = Ttl::longest;
    for (const auto& [store, i] : missing(plan, stores, joined)) {
        const client::Terms& terms = plan.terms[i];
        shortest = std::min({shortest, terms.ttl.time(), terms.max_hold.value_or(Ttl::longest)});
    }
    // A joined lease may be close to its longest hold.
    for (const client::JoinedLease& lease : joined)
        shortest = std::min({shortest, lease.ttl().time(), client::time_left(lease.granted().lock)});
    return shortest;
}

Result<HoldGroup> take(const Context& context, const Plan& plan, const std::vector<Store*>& stores, JoinedLeases joined,
                       const WaitHooks& hooks) {
    std::vector<HoldTarget> targets;
    for (const auto& [store, i] : missing(plan, stores, joined))
        targets.push_back({store, plan.names[i], options_for(context, plan, *store, i, plan.terms[i].ttl, hooks)});
    std::vector<Hold> held;
    for (client::JoinedLease& lease : joined) {
        const auto name = std::ranges::find(plan.names, lease.granted().lock.name);
        const auto i = static_cast<std::size_t>(name - plan.names.begin());
        const HoldOptions options = options_for(context, plan, lease.store(), i, lease.ttl(), hooks);
        auto kept = std::move(lease).keep(options);
        if (!kept) return std::unexpected(kept.error());
        held.push_back(std::move(*kept));
    }
    auto taken = hold_all(std::move(targets), std::move(held));
    // The command has one code for all waits that end without the lock.
    if (!taken && (taken.error().code == Errc::timed_out || taken.error().code == Errc::cancelled))
        taken.error().code = Errc::lock_conflict;
    return taken;
}

std::vector<HeldLease> leases_of(const HoldGroup& group, std::size_t joined, const Plan& plan,
                                 const std::vector<Store*>& stores) {
    std::vector<HeldLease> leases;
    for (const LockName& name : plan.names)
        for (const Store* store : stores)
            for (std::size_t i = 0; i < group.holds().size(); ++i) {
                const Hold& hold = group.holds()[i];
                if (hold.name() != name || &hold.store() != store) continue;
                leases.push_back(
                    {{name, hold.credentials(), hold.token(), hold.store_id(), to_rfc3339(hold.lease().expires_at)},
                     i < joined ? Joined::yes : Joined::no});
            }
    return leases;
}

std::vector<InheritedLease> leases_for_child(const std::vector<HeldLease>& held,
                                             const std::vector<InheritedLease>& inherited) {
    std::vector<InheritedLease> leases;
    for (const HeldLease& each : held) leases.push_back(each.lease);
    for (const InheritedLease& outer : inherited) {
        const bool replaced = std::ranges::any_of(held, [&](const HeldLease& each) {
            return each.lease.name == outer.name && (!outer.store_id || outer.store_id == each.lease.store_id);
        });
        if (!replaced) leases.push_back(outer);
    }
    return leases;
}

}  // namespace holdfast::cli
