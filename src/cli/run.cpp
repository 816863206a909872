#include "json/run.hpp"

#include "base/os_error.hpp"
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/fence_seals.hpp"
#include "cli/lease_environment.hpp"
#include "cli/report.hpp"
#include "cli/run_locks.hpp"
#include "cli/waiting_notice.hpp"
#include "client/policy.hpp"
#include "guards/run/outer.hpp"
#include "guards/run/supervisor.hpp"
#include "holdfast/hold.hpp"
#include "json/error.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <system_error>
#include <unistd.h>

namespace holdfast::cli {
namespace {

namespace guard = guards::run;
using std::chrono::milliseconds;

constexpr Option and_name{
    {"and", Takes::many, "", "", From::environment}, '\0', "NAME", "Hold this lock as well: all of them or none."};
constexpr int holdfast_failed = 125;

Result<Plan> plan(const Context& context) {
    Plan plan;
    plan.holder = context.holder();
    if (!context.line.tail.empty())
        plan.operation = context.settings.given(opt::operation) ? context.settings.text(opt::operation)
                                                                : end_of(printable(context.line.tail.front()), 255);
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    auto more = context.settings.names(and_name);
    if (!more) return std::unexpected(more.error());
    plan.names.push_back(*name);
    plan.names.insert(plan.names.end(), more->begin(), more->end());
    for (auto each = plan.names.begin(); each != plan.names.end(); ++each)
        if (std::find(plan.names.begin(), each, *each) != each)
            return fail(Errc::usage, "the same lock is asked for twice: " + each->text());
    if (context.line.tail.empty())
        return fail(Errc::usage, "run needs a command after --: holdfast run NAME -- CMD ARG...");

    auto meta = context.settings.meta();
    if (!meta) return std::unexpected(meta.error());
    plan.meta = std::move(*meta);
    milliseconds shortest = Ttl::longest;
    for (const LockName& each : plan.names) {
        auto terms = context.settings.terms_for(each);
        if (!terms) return std::unexpected(terms.error());
        shortest = std::min({shortest, terms->ttl.time(), terms->max_hold.value_or(Ttl::longest)});
        plan.terms.push_back(std::move(*terms));
    }
    const auto grace = grace_for(context, shortest);
    if (!grace) return std::unexpected(grace.error());
    plan.grace = *grace;
    return plan;
}

/// Waiting for the locks: shows a notice, and ends at once when a stop signal comes.
class Waiting {
public:
    Waiting(const Context& context, guard::OuterLink& outer, bool waits)
        : notice_(context.out, context.clock), outer_(outer), waits_(waits) {}

    [[nodiscard]] WaitHooks hooks() {
        return {stop_.get_token(),
                [this](const Error& conflict, Store& store, const LockName& name) { blocked(conflict, store, name); }};
    }

    void blocked(const Error& conflict, Store& store, const LockName& name) {
        if (!waits_ || why_no_listener_) return;
        listen();
        if (!why_no_listener_) notice_.show(conflict, store, name);
    }

    /// All stores, as soon as they can be reached. That is a part of the wait: it takes what it takes from the waits of
    /// the plan.
    [[nodiscard]] Result<std::vector<Store*>> stores(Context& context, Plan& plan) {
        if (!waits_) return context.stores();
        const Boottime began = context.clock.boottime();
        const auto longest = std::ranges::max_element(plan.terms, {}, &client::Terms::wait)->wait;
        context.wait_for_stores({Deadline::in(context.clock, longest), stop_.get_token(), [this](const Error& why) {
                                     listen();
                                     notice_.show_away(why);
                                 }});
        auto opened = context.stores();
        const auto took = std::chrono::ceil<milliseconds>(context.clock.boottime() - began);
        for (client::Terms& terms : plan.terms)
            if (terms.wait != milliseconds::max()) terms.wait = std::max(terms.wait - took, milliseconds{0});
        return opened;
    }

    /// The stop signal that came, if one did.
    [[nodiscard]] std::optional<int> finish() { return listener_ ? listener_->finish() : std::nullopt; }
    /// Why the wait was given up, unless it was for a signal.
    [[nodiscard]] const std::optional<Error>& why_no_listener() const { return why_no_listener_; }

private:
    /// Starts the thread that hears signals only when it is needed, since most commands need not wait. Without the
    /// thread no signal could end the wait, so then the wait and its place in the queue are given up at once.
    void listen() {
        if (listener_ || why_no_listener_) return;
        try {
            listener_.emplace(outer_, stop_);
        } catch (const std::system_error& error) {
            why_no_listener_ = base::os_error(error.code().value(), "start a thread that hears signals");
            stop_.request_stop();
        }
    }

    WaitingNotice notice_;
    guard::OuterLink& outer_;
    const bool waits_;
    std::stop_source stop_;
    std::optional<guard::StopListener> listener_;
    std::optional<Error> why_no_listener_;
};

std::string_view name_of(guard::Ending ending) {
    switch (ending) {
        case guard::Ending::child_exit: return "child_exit";
        case guard::Ending::lost: return "lost";
        case guard::Ending::interrupted: return "interrupted";
        case guard::Ending::not_runnable: return "not_runnable";
        case guard::Ending::failed: return "failed";
    }
    std::abort();
}

int status_of(const guard::Verdict& verdict) {
    switch (verdict.ending) {
        case guard::Ending::lost: return row_of(Errc::lock_expired).exit_status;
        case guard::Ending::failed: return holdfast_failed;
        default: return verdict.signal ? 128 + *verdict.signal : verdict.code.value_or(holdfast_failed);
    }
}

/// ` (joined)`, or with the names where only some of the locks were joined.
std::string joined_words(const std::vector<HeldLease>& leases) {
    std::vector<std::string> names;
    for (const HeldLease& each : leases)
        if (each.joined == Joined::yes) names.push_back(printable(each.lease.name.text()));
    if (names.empty()) return "";
    return names.size() == leases.size() ? " (joined)" : fmt::format(" (joined {})", fmt::join(names, ", "));
}

std::string in_words(const Plan& plan, const guard::Verdict& verdict, const std::vector<HeldLease>& leases) {
    const std::string name = printable(plan.names.front().text()) + joined_words(leases);
    const std::string why = verdict.error ? ": " + printable(verdict.error->message) : "";
    switch (verdict.ending) {
        case guard::Ending::lost:
            if (!verdict.out_of_reach.empty())
                return fmt::format("{}: the lease was lost, and what runs as another user could not be stopped: {}{}",
                                   name, guard::names_of(verdict.out_of_reach), why);
            if (!verdict.code && !verdict.signal)
                return verdict.left_over.empty() ? fmt::format("{}: the command was not started{}", name, why)
                                                 : fmt::format("{}: the lease was lost, and still running: {}{}", name,
                                                               guard::names_of(verdict.left_over), why);
            return fmt::format(
                "{}: the lease was lost and the command was stopped{}{}", name,
                verdict.left_over.empty() ? "" : ", but still running: " + guard::names_of(verdict.left_over), why);
        case guard::Ending::interrupted:
            return fmt::format("{}: stopped by signal {} before the command was started", name, *verdict.signal);
        case guard::Ending::not_runnable:
        case guard::Ending::failed: return fmt::format("{}: the command was not started{}", name, why);
        case guard::Ending::child_exit: break;
    }
    std::string ended = verdict.signal ? fmt::format("ended by signal {}", *verdict.signal)
                                       : fmt::format("ended with status {}", *verdict.code);
    if (verdict.left_over.empty())
        return fmt::format("{}: {}{}{}", name, ended, verdict.error ? "; the lease was not released" : "", why);
    return fmt::format("{}: {}, but left running: {}; the lease is not released and runs out by itself", name, ended,
                       guard::names_of(verdict.left_over));
}

json::Value error_value(const Context& context, const std::optional<Error>& error) {
    if (!error) return {};
    return json::error_body(*error, hint_for(*error, &context.settings), context.info()).done();
}

json::Supervised supervised(const guard::Verdict& verdict, const std::vector<HeldLease>& leases) {
    json::Supervised seen;
    for (const auto& [lease, joined] : leases)
        seen.locks.push_back({lease.name, lease.token, lease.as.lock_id, lease.store_id, joined == Joined::yes});
    for (const auto& relative : verdict.left_over)
        seen.left_over.push_back({relative.pid == 0 ? std::nullopt : std::optional<int>(relative.pid), relative.name});
    seen.margin = verdict.margin;
    return seen;
}

/// The final word: one line on standard error, or one document.
void conclude(Context& context, const Plan& plan, const guard::Verdict& verdict, const std::vector<HeldLease>& leases) {
    const int status = status_of(verdict);
    const bool is_plain_success = status == 0 && !verdict.error && verdict.left_over.empty();
    if (!context.out.style().json) {
        if (!is_plain_success || context.out.tells_success())
            context.out.note("holdfast: " + in_words(plan, verdict, leases));
        return;
    }
    const bool ran = verdict.ending == guard::Ending::child_exit || verdict.ending == guard::Ending::lost;
    context.out.document(json::run_outcome({.outcome = name_of(verdict.ending),
                                            .exit_code = status,
                                            .child_code = ran ? verdict.code : std::nullopt,
                                            .child_signal = ran ? verdict.signal : std::nullopt,
                                            .supervised = supervised(verdict, leases),
                                            .error = error_value(context, verdict.error)})
                             .done());
}

std::function<void(const std::string&)> notice_on(const Output& out) {
    return [&out](const std::string& text) { out.note_if_writable("holdfast: " + printable(text)); };
}

guard::Job job_of(const Context& context, const Plan& plan, const std::vector<InheritedLease>& leases) {
    guard::Job job;
    job.command = context.line.tail;
    job.grace = plan.grace;
    job.leave_behind = context.settings.on(opt::leave_behind);
    // Another store than that of the settings is no store for other commands.
    job.environment =
        environment_with(leases, plan.store_url.empty() ? context.settings.store_for_child() : config::StoreForChild{});
    job.notice = notice_on(context.out);
    return job;
}

Result<int> run_unguarded(Context& context, const Plan& plan) {
    Output::warn(fmt::format("holdfast: warning: running without the lock {}, as --no-lock says",
                             printable(plan.names.front().text())));
    const guard::Signals signals;
    const auto leases = inherited_leases();
    if (!leases) return std::unexpected(leases.error());
    const auto verdict = guard::supervise(job_of(context, plan, *leases), nullptr, signals, context.clock);
    conclude(context, plan, verdict, {});
    return status_of(verdict);
}

/// The locks are not to be had: with --json that is an outcome like any other.
Result<int> not_acquired(Context& context, const Error& error, std::optional<int> signal) {
    const bool skip = error.code == Errc::lock_conflict && context.settings.text(opt::if_held) == "skip";
    const int status = signal ? 128 + *signal : exit_status(error, context.settings);
    if (!context.out.style().json) {
        if (signal)
            context.out.note(
                fmt::format("holdfast: stopped by signal {} while waiting; the command was not started", *signal));
        else if (skip)
            note_skipped(context.out, error);
        else
            return std::unexpected(error);
        return status;
    }
    const std::string_view outcome = signal ? "interrupted" : skip ? "skipped" : "not_acquired";
    context.out.document(
        json::run_outcome({.outcome = outcome, .exit_code = status, .error = error_value(context, error)}).done());
    return status;
}

/// The inner process: takes the locks, holds them, and supervises the command.
Result<int> run_inner(Context& context, Plan plan, const std::vector<InheritedLease>& inherited,
                      const guard::Signals& signals, guard::OuterLink& outer) {
    const bool waits = std::ranges::any_of(plan.terms, [](const auto& terms) { return terms.wait > milliseconds{0}; });
    Waiting waiting(context, outer, waits);
    if (!plan.store_url.empty())
        if (const auto opened = context.use_store(plan.store_url); !opened)
            return not_acquired(context, opened.error(), std::nullopt);
    const auto stores = waiting.stores(context, plan);
    if (!stores) return not_acquired(context, stores.error(), waiting.finish());
    auto joined = join_outer(context, plan, *stores, inherited);
    if (!joined) return not_acquired(context, joined.error(), std::nullopt);
    const std::size_t joined_count = joined->size();
    // How long a joined lease lasts is known only now.
    const auto grace = grace_for(context, shortest_lease(plan, *stores, *joined));
    if (!grace) return not_acquired(context, grace.error(), std::nullopt);
    plan.grace = *grace;
    auto taken = take(context, plan, *stores, *std::move(joined), waiting.hooks());
    const auto signal = waiting.finish();
    if (!taken && taken.error().code == Errc::lock_conflict && waiting.why_no_listener())
        return not_acquired(context, *waiting.why_no_listener(), signal);
    if (!taken) return not_acquired(context, taken.error(), signal);
    guard::Guarded guarded{*std::move(taken), outer};
    if (signal) {
        // The grant came in the same moment. Nobody is there any more to use it.
        if (auto released = guarded.group.release(); !released) return std::unexpected(released.error());
        return not_acquired(context, {Errc::lock_conflict, "stopped by a signal while waiting"}, signal);
    }

    const auto leases = leases_of(guarded.group, joined_count, plan, *stores);
    const auto told = leases_for_child(leases, inherited);
    const auto sealed = seal_databases(context, leases, guarded.group);
    const auto ready = sealed && plan.before_command ? plan.before_command(leases, *stores->front()) : Result<void>();
    if (!sealed || !ready) {
        // Nothing has run under the lease. That it cannot be given back now does not change the answer.
        static_cast<void>(guarded.group.release());
        return not_acquired(context, sealed ? ready.error() : sealed.error(), std::nullopt);
    }
    guard::Job job = job_of(context, plan, told);
    if (*sealed == Sealed::in_postgres) carry_in_postgres(job.environment, told);
    const auto verdict = guard::supervise(job, &guarded, signals, context.clock);
    conclude(context, plan, verdict, leases);
    if (guarded.group.is_stuck()) {
        // A call to the store has not returned, and may never return. Our lease has ended, so do not wait for it.
        static_cast<void>(context.out.flush());
        _exit(status_of(verdict));
    }
    return status_of(verdict);
}

/// The outer process: waits for the inner one, and tells the outcome where that cannot.
int run_outer(Context& context, const Plan& plan, guard::InnerLink link, const guard::OuterOptions& options,
              const guard::Signals& signals) {
    const auto ended = guard::guard_inner(std::move(link), options, signals, context.clock);
    if (const int* status = std::get_if<int>(&ended)) return *status;
    const auto& verdict = std::get<guard::Verdict>(ended);
    conclude(context, plan, verdict, {});
    return status_of(verdict);
}

Result<int> run(Context& context) {
    auto planned = plan(context);
    if (!planned) return std::unexpected(planned.error());
    if (context.settings.on(opt::no_lock)) return run_unguarded(context, *planned);
    return run_planned(context, *std::move(planned));
}

constexpr std::array words{Word{"NAME"}};
constexpr std::array options{and_name,          opt::ttl,         opt::wait,   opt::no_wait, opt::max_hold,
                             opt::grace,        opt::operation,   opt::reason, opt::holder,  opt::user,
                             opt::session,      opt::unless_held, opt::meta,   opt::if_held, opt::fence,
                             opt::leave_behind, opt::no_lock};

}  // namespace

Result<milliseconds> grace_for(const Context& context, milliseconds shortest_ttl) {
    const auto asked = context.settings.duration(opt::grace);
    if (!asked) return asked;
    if (!context.settings.given(opt::grace)) return std::min(*asked, shortest_ttl / 3);
    if (*asked > shortest_ttl / 2)
        return fail(
            Errc::usage,
            fmt::format(
                "a grace of {} is more than half of the {} that a lease lasts: there would be no time left to work",
                to_words(*asked), to_words(shortest_ttl)));
    return asked;
}

Result<int> run_planned(Context& context, Plan plan) {
    const auto inherited = inherited_leases();
    if (!inherited) return std::unexpected(inherited.error());
    guard::Signals signals;
    const guard::OuterOptions outer{guard::children(), notice_on(context.out)};
    auto chain = guard::fork_inner(signals);
    if (!chain) {
        guard::Verdict verdict;
        verdict.error = chain.error();
        conclude(context, plan, verdict, {});
        return status_of(verdict);
    }
    if (auto* inner = std::get_if<guard::InnerLink>(&*chain))
        return run_outer(context, plan, std::move(*inner), outer, signals);
    return run_inner(context, std::move(plan), *inherited, signals, std::get<guard::OuterLink>(*chain));
}

constinit const Command run_command{"run",
                                    "",
                                    "Run a command while holding a lock",
                                    "Takes the lock NAME, runs CMD, keeps the lease renewed, and gives the lock back "
                                    "when CMD and everything that it started has ended. "
                                    "The exit status is that of CMD, or 128+n when signal n ended it.\n\n"
                                    "When the lease cannot be renewed, CMD gets SIGTERM early enough that SIGKILL, "
                                    "after the grace, lands before anybody else can take the lock; "
                                    "the exit status is then 76. The same happens when holdfast itself is killed or "
                                    "stopped: it is two processes, and either ends CMD when the other cannot.\n\n"
                                    "What CMD leaves running keeps the lock, and is named, until it has ended or "
                                    "--leave-behind is given.\n\n"
                                    "CMD finds HOLDFAST_LOCK, HOLDFAST_LEASE, HOLDFAST_TOKEN, HOLDFAST_LOCK_ID and "
                                    "HOLDFAST_EXPIRES_AT in its environment, and all of its leases in HOLDFAST_LEASES. "
                                    "A holdfast command inside that asks for the same lock joins it: it neither waits "
                                    "nor releases, and ends its own command when the lease is lost.\n\n"
                                    "Example: holdfast run migrate/prod --wait 5m -- ./migrate up",
                                    words,
                                    options,
                                    run,
                                    Tail::command};

}  // namespace holdfast::cli
