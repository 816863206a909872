#include "cli/command.hpp"
#include "cli/grant.hpp"
#include "cli/join.hpp"
#include "cli/report.hpp"
#include "cli/signals.hpp"
#include "cli/waiting_notice.hpp"
#include "client/limits.hpp"
#include "client/waiter.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

/// A command inside a held lock that asks for the same lock joins it: it would otherwise wait for its
/// own parent. Absent when there is nothing to join.
Result<std::optional<int>> join_outer(Context& context, const LockName& name, const client::Terms& terms) {
    const auto inherited = inherited_leases(name);
    if (!inherited) return std::unexpected(inherited.error());
    if (inherited->empty()) return std::nullopt;
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    // Without renewals the lease lasts as long as it does, whatever ttl is asked for.
    const auto joined = join(context, **store, name, {terms.unless_held, terms.ttl, terms.renew}, *inherited);
    if (!joined) return std::unexpected(joined.error());
    if (!*joined) return std::nullopt;
    auto printed = hand_over(context, (*joined)->granted(), (*joined)->granted().as, Joined::yes);
    if (!printed) return std::unexpected(printed.error());
    return *printed;
}

int stopped_by_signal(Context& context, const LockName& name, const StopOnSignal& signals) {
    const Error left{Errc::lock_conflict,
                     fmt::format("stopped by a signal while waiting for {}; the place in the queue is given up",
                                 printable(name.text()))};
    report(left, context.out, context.info(), &context.settings);
    return signals.exit_status();
}

Result<int> acquire_waiting(Context& context, const Acquire& request, milliseconds wait) {
    if (auto error = client::beyond_limits(request)) return std::unexpected(std::move(*error));
    const StopOnSignal signals;
    WaitingNotice notice(context.out, context.clock);
    const Deadline until = Deadline::in(context.clock, wait);
    context.wait_for_stores({until, signals.token(), [&notice](const Error& why) { notice.show_away(why); }});
    const auto store = context.store();
    if (!store && signals.signal() != 0) return stopped_by_signal(context, request.name, signals);
    if (!store) return std::unexpected(store.error());
    const client::Patience patience{until, signals.token(),
                                    [&](const Error& conflict) { notice.show(conflict, **store, request.name); }};
    const auto granted = client::acquire_in_turn(**store, request, context.clock, patience);
    if (signals.signal() == 0) {
        if (!granted) return std::unexpected(granted.error());
        return hand_over(context, *granted, granted->as);
    }
    // The wait was interrupted. A grant that arrived in the same moment is released.
    if (granted)
        if (auto cancelled = context.apply(Cancel{request.name, granted->as}); !cancelled)
            return std::unexpected(cancelled.error());
    return stopped_by_signal(context, request.name, signals);
}

Result<int> run(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    const auto terms = context.settings.terms_for(*name);
    if (!terms) return std::unexpected(terms.error());
    const auto request = acquire_request(context, *name, *terms);
    if (!request) return std::unexpected(request.error());

    const auto joined = join_outer(context, *name, *terms);
    if (!joined) return std::unexpected(joined.error());
    if (*joined) return **joined;

    if (terms->wait > milliseconds{0}) return acquire_waiting(context, *request, terms->wait);
    const auto granted = context.apply(*request);
    if (!granted) return std::unexpected(granted.error());
    return hand_over(context, *granted, request->as);
}

constexpr std::array one_name{Word{"NAME"}};
constexpr std::array acquire_options{opt::ttl,    opt::wait,    opt::no_wait, opt::max_hold, opt::operation,
                                     opt::reason, opt::holder,  opt::user,    opt::session,  opt::unless_held,
                                     opt::meta,   opt::if_held, opt::format};

constexpr Option hold_for{{"for", Takes::one, "", "", From::environment}, '\0', "D", "How long to hold."};
constexpr std::array hold_options{hold_for,  opt::wait,    opt::no_wait,     opt::reason, opt::operation, opt::holder,
                                  opt::user, opt::session, opt::unless_held, opt::meta,   opt::if_held,   opt::format};

Result<int> run_hold(Context& context) {
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    if (!context.settings.given(hold_for)) return fail(Errc::usage, "hold needs --for, such as --for 2h");
    if (context.settings.text(opt::reason).empty())
        return fail(Errc::usage, "hold needs --reason: everybody who is kept out will ask");
    const auto time = context.settings.ttl(hold_for);
    if (!time) return std::unexpected(time.error());
    auto excluded = context.settings.names(opt::unless_held);
    if (!excluded) return std::unexpected(excluded.error());
    // A policy's times are meant for work under the lock; the locks that exclude it exclude an operator's hold, too.
    const auto policy = context.settings.terms_for(*name, {.unless_held = std::move(*excluded)});
    if (!policy) return std::unexpected(policy.error());
    client::Terms terms{*time};
    terms.unless_held = policy->unless_held;
    const auto wait = context.settings.wait();
    if (!wait) return std::unexpected(wait.error());
    const auto request = acquire_request(context, *name, terms);
    if (!request) return std::unexpected(request.error());
    if (*wait > milliseconds{0}) return acquire_waiting(context, *request, *wait);
    const auto granted = context.apply(*request);
    if (!granted) return std::unexpected(granted.error());
    return hand_over(context, *granted, request->as);
}

}  // namespace

constinit const Command acquire_command{
    "acquire",
    "",
    "Take a lease for a script",
    "Takes the lock NAME and prints a lease, which proves that the lock is yours, "
    "and a token, which rises with every grant. "
    "Renew the lease before it runs out, and release it when the work is done.\n\n"
    "When somebody else holds the lock, the command fails with status 75 and says "
    "who; with --wait it waits in line first. "
    "Where HOLDFAST_LOCK and HOLDFAST_LEASE, or HOLDFAST_LEASES, show that the lock is "
    "already held by a command around this one, that lease is joined.\n\n"
    "In a script: lease=$(holdfast acquire deploy/prod --ttl 10m --format sh) || exit; "
    "eval \"$lease\"",
    one_name,
    acquire_options,
    run};

constinit const Command hold_command{
    "hold",
    "",
    "Hold a lock for maintenance, without a command to run",
    "Takes the lock NAME for the time that --for says, so that nobody else can work, and says why. "
    "With --wait it waits in line for those who work now. "
    "End it early with the lease that it prints, or with holdfast unlock.\n\n"
    "Example: holdfast hold deploy/prod --for 2h --reason \"database upgrade\"",
    one_name,
    hold_options,
    run_hold};

}  // namespace holdfast::cli
