#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/lease_environment.hpp"
#include "cli/report.hpp"
#include "client/policy.hpp"
#include "guards/run/supervisor.hpp"
#include "holdfast/hold.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace holdfast::cli {
namespace {

namespace guard = guards::run;
using std::chrono::milliseconds;

constexpr Option and_name{"and", '\0', Takes::many,      "NAME", "Hold this lock as well: all of them or none.",
                          "",    "",   From::environment};
constexpr Option grace_option{
    "grace",
    '\0',
    Takes::one,
    "D",
    "Between SIGTERM and SIGKILL when the lease runs out; at most a third of the ttl by default.",
    "5s"};
constexpr Option no_lock{"no-lock", '\0', Takes::nothing, "", "Run without a lock, with a warning."};

constexpr int holdfast_failed = 125;

/// What is asked for, checked, before any store is touched.
struct Plan {
    std::vector<LockName> names;
    std::vector<client::Terms> terms;  ///< One for each name.
    milliseconds grace{0};
};

Result<milliseconds> grace_for(const Context& context, milliseconds shortest_ttl) {
    const auto asked = context.settings.duration(grace_option);
    if (!asked) return asked;
    if (!context.settings.given(grace_option)) return std::min(*asked, shortest_ttl / 3);
    if (*asked > shortest_ttl / 2)
        return fail(
            Errc::usage,
            fmt::format("a grace of {} is more than half of the ttl of {}: there would be no time left to renew",
                        to_words(*asked), to_words(shortest_ttl)));
    return asked;
}

Result<Plan> plan(const Context& context) {
    Plan plan;
    const auto name = context.name();
    if (!name) return std::unexpected(name.error());
    auto more = context.settings.names(and_name);
    if (!more) return std::unexpected(more.error());
    plan.names.push_back(*name);
    plan.names.insert(plan.names.end(), more->begin(), more->end());
    if (context.line.tail.empty())
        return fail(Errc::usage, "run needs a command after --: holdfast run NAME -- CMD ARG...");

    milliseconds shortest = Ttl::longest;
    for (const LockName& each : plan.names) {
        auto terms = context.settings.terms_for(each);
        if (!terms) return std::unexpected(terms.error());
        shortest = std::min(shortest, terms->ttl.time());
        plan.terms.push_back(std::move(*terms));
    }
    const auto grace = grace_for(context, shortest);
    if (!grace) return std::unexpected(grace.error());
    plan.grace = *grace;
    return plan;
}

/// Waiting for the locks: says who is in the way, and ends at once when a stop signal comes.
class Waiting {
public:
    Waiting(const Context& context, const guard::Signals& signals, bool waits)
        : context_(context), signals_(signals), waits_(waits) {}

    std::stop_token stop() const { return stop_.get_token(); }

    void blocked(const Error& conflict) {
        // Only who has to wait pays for a thread.
        if (waits_ && !listener_) listener_.emplace(signals_, stop_);
        const auto& lock = conflict.holder;
        const std::string now = lock && lock->lease ? lock->lease->lock_id.text() : "";
        if (now == seen_) return;
        seen_ = now;
        if (waits_ && !context_.out.style().json) context_.out.note("waiting: " + printable(conflict.message));
    }

    /// The stop signal that came, if one did.
    [[nodiscard]] std::optional<int> finish() { return listener_ ? listener_->finish() : std::nullopt; }

private:
    const Context& context_;
    const guard::Signals& signals_;
    const bool waits_;
    std::stop_source stop_;
    std::optional<guard::StopListener> listener_;
    std::string seen_{"nobody yet"};
};

/// Leases of commands around this one that are still good: their locks are joined, not taken.
Result<std::vector<InheritedLease>> joined_leases(Context& context, const Plan& plan,
                                                  const std::vector<InheritedLease>& inherited) {
    std::vector<InheritedLease> joined;
    for (const InheritedLease& lease : inherited) {
        if (std::ranges::find(plan.names, lease.name) == plan.names.end()) continue;
        const auto stores = context.stores();
        if (!stores) return std::unexpected(stores.error());
        const auto status = stores->front()->inspect(lease.name, context.soon());
        if (!status) return std::unexpected(status.error());
        if (status->state == LockState::held && status->lease->lock_id == lease.as.lock_id) joined.push_back(lease);
    }
    return joined;
}

Result<HoldGroup> take(Context& context, const Plan& plan, const std::vector<InheritedLease>& joined,
                       Waiting& waiting) {
    const auto stores = context.stores();
    if (!stores) return std::unexpected(stores.error());
    std::vector<HoldTarget> targets;
    for (std::size_t i = 0; i < plan.names.size(); ++i) {
        if (std::ranges::find(joined, plan.names[i], &InheritedLease::name) != joined.end()) continue;
        const client::Terms& terms = plan.terms[i];
        HoldOptions options;
        options.holder = context.holder();
        options.operation = context.settings.given(opt::operation) ? context.settings.text(opt::operation)
                                                                   : printable(context.line.tail.front());
        options.reason = context.settings.text(opt::reason);
        options.ttl = terms.ttl;
        options.max_hold = terms.max_hold;
        options.unless_held = terms.unless_held;
        options.wait = terms.wait;
        options.cancel = waiting.stop();
        options.renew = terms.renew;
        options.renew_from = RenewFrom::the_call;
        options.renew_interval = std::min(terms.renew_interval.value_or(HoldOptions::forever),
                                          guard::renew_interval(terms.ttl.time(), plan.grace));
        options.time_to_stop = plan.grace;
        options.observer = [&waiting](const HoldEvent& event) {
            if (event.kind == HoldEventKind::blocked && event.cause) waiting.blocked(*event.cause);
        };
        options.clock = &context.clock;
        for (Store* store : *stores) targets.push_back({store, plan.names[i], options});
    }
    return hold_all(std::move(targets));
}

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

std::string in_words(const Plan& plan, const guard::Verdict& verdict) {
    const std::string name = printable(plan.names.front().text());
    const std::string why = verdict.error ? ": " + printable(verdict.error->message) : "";
    switch (verdict.ending) {
        case guard::Ending::lost: return fmt::format("{}: the lease was lost and the command was stopped{}", name, why);
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
    std::vector<std::string> names;
    for (const auto& relative : verdict.left_over)
        names.push_back(fmt::format("{} (pid {})", printable(relative.name), relative.pid));
    return fmt::format("{}: {}, but left running: {}; the lease is not released and runs out by itself", name, ended,
                       fmt::join(names, ", "));
}

json::Value number_or_null(const std::optional<int>& number) {
    return number ? json::Value::number(std::int64_t{*number}) : json::Value();
}

/// The final word: one line on standard error, or one document.
void conclude(Context& context, const Plan& plan, const guard::Verdict& verdict,
              const std::vector<InheritedLease>& leases) {
    const int status = status_of(verdict);
    if (!context.out.style().json) return context.out.note("holdfast: " + in_words(plan, verdict));
    std::vector<json::Value> locks;
    for (const InheritedLease& lease : leases)
        locks.push_back(json::Object()
                            .set("name", json::Value::text(lease.name.text()))
                            .set("token", json::Value::number(std::uint64_t{std::stoull("0" + lease.token)}))
                            .set("lock_id", json::Value::text(lease.as.lock_id.text()))
                            .done());
    std::vector<json::Value> left_over;
    for (const auto& relative : verdict.left_over)
        left_over.push_back(json::Object()
                                .set("pid", json::Value::number(std::int64_t{relative.pid}))
                                .set("name", json::Value::text(relative.name))
                                .done());
    json::Object document;
    document.set("outcome", json::Value::text(name_of(verdict.ending)));
    document.set("exit_code", json::Value::number(std::int64_t{status}));
    const bool ran = verdict.ending == guard::Ending::child_exit || verdict.ending == guard::Ending::lost;
    document.set("child", json::Object()
                              .set("code", number_or_null(ran ? verdict.code : std::nullopt))
                              .set("signal", number_or_null(ran ? verdict.signal : std::nullopt))
                              .done());
    document.set("locks", json::Value::array(locks));
    document.set("left_over", json::Value::array(left_over));
    document.set("margin_ms",
                 verdict.margin ? json::Value::number(std::int64_t{verdict.margin->count()}) : json::Value());
    document.set("error", verdict.error
                              ? json::error_body(*verdict.error, hint_for(*verdict.error), context.info()).done()
                              : json::Value());
    context.out.document(document.done());
}

guard::Job job_of(const Context& context, const Plan& plan, const std::vector<InheritedLease>& leases) {
    guard::Job job;
    job.command = context.line.tail;
    job.grace = plan.grace;
    job.environment =
        environment_with(leases, context.settings.store_for_child(),
                         context.settings.given(opt::store) && !context.settings.in_environment(opt::store));
    job.notice = [&context](const std::string& text) { context.out.note("holdfast: " + text); };
    return job;
}

Result<int> run_unguarded(Context& context, const Plan& plan) {
    Output::warn(fmt::format("holdfast: warning: running without the lock {}, as --no-lock says",
                             printable(plan.names.front().text())));
    const guard::Signals signals;
    const auto leases = inherited_leases();
    const auto verdict = guard::supervise(job_of(context, plan, leases), nullptr, signals, context.clock);
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
            context.out.note("holdfast: skipped: " + printable(error.message));
        else
            return std::unexpected(error);
        return status;
    }
    const std::string_view outcome = signal ? "interrupted" : skip ? "skipped" : "not_acquired";
    context.out.document(
        json::Object()
            .set("outcome", json::Value::text(outcome))
            .set("exit_code", json::Value::number(std::int64_t{status}))
            .set("child", json::Object().set("code", json::Value()).set("signal", json::Value()).done())
            .set("error", json::error_body(error, hint_for(error), context.info()).done())
            .done());
    return status;
}

Result<int> run(Context& context) {
    const auto planned = plan(context);
    if (!planned) return std::unexpected(planned.error());
    if (context.settings.on(no_lock)) return run_unguarded(context, *planned);

    const guard::Signals signals;
    const auto inherited = inherited_leases();
    auto joined = joined_leases(context, *planned, inherited);
    if (!joined) return not_acquired(context, joined.error(), std::nullopt);

    const bool waits =
        std::ranges::any_of(planned->terms, [](const auto& terms) { return terms.wait > milliseconds{0}; });
    Waiting waiting(context, signals, waits);
    std::optional<guard::Guarded> guarded;
    if (joined->size() < planned->names.size()) {
        auto watchdog = guard::Watchdog::start(planned->grace);
        if (!watchdog) {
            guard::Verdict verdict;
            verdict.error = watchdog.error();
            conclude(context, *planned, verdict, {});
            return status_of(verdict);
        }
        auto taken = take(context, *planned, *joined, waiting);
        const auto signal = waiting.finish();
        if (!taken) return not_acquired(context, taken.error(), signal);
        guarded.emplace(std::move(*taken), std::move(*watchdog));
        if (signal) {
            // The grant came in the same moment. Nobody is there any more to use it.
            if (auto released = guarded->group.release(); !released) return std::unexpected(released.error());
            return not_acquired(context, {Errc::lock_conflict, "stopped by a signal while waiting"}, signal);
        }
    }

    std::vector<InheritedLease> leases;
    for (const LockName& name : planned->names) {
        const Hold* hold = guarded ? guarded->group.find(name) : nullptr;
        if (hold != nullptr)
            leases.push_back(
                {name, hold->credentials(), std::to_string(hold->token().value), to_rfc3339(hold->lease().expires_at)});
    }
    const std::size_t own = leases.size();
    for (const InheritedLease& lease : inherited)
        if (std::ranges::find(leases, lease.name, &InheritedLease::name) == leases.end()) leases.push_back(lease);

    const auto verdict =
        guard::supervise(job_of(context, *planned, leases), guarded ? &*guarded : nullptr, signals, context.clock);
    leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(own), leases.end());
    conclude(context, *planned, verdict, leases);
    return status_of(verdict);
}

constexpr std::array words{Word{"NAME"}};
constexpr std::array options{and_name,     opt::ttl,         opt::wait,    opt::no_wait, opt::max_hold,
                             grace_option, opt::operation,   opt::reason,  opt::holder,  opt::user,
                             opt::session, opt::unless_held, opt::if_held, no_lock};

}  // namespace

constinit const Command run_command{"run",
                                    "",
                                    "Run a command while holding a lock",
                                    "Takes the lock NAME, runs CMD, keeps the lease renewed, and gives the lock back "
                                    "when CMD and everything that it started has ended. "
                                    "The exit status is that of CMD, or 128+n when signal n ended it.\n\n"
                                    "When the lease cannot be renewed, CMD gets SIGTERM early enough that SIGKILL, "
                                    "after the grace, lands before anybody else can take the lock; "
                                    "the exit status is then 76. The same happens when holdfast itself is killed or "
                                    "stopped: a small watchdog process sees to it.\n\n"
                                    "CMD finds HOLDFAST_LOCK, HOLDFAST_LEASE, HOLDFAST_TOKEN, HOLDFAST_LOCK_ID and "
                                    "HOLDFAST_EXPIRES_AT in its environment. "
                                    "A holdfast command inside that asks for the same lock joins it.\n\n"
                                    "Example: holdfast run migrate/prod --wait 5m -- ./migrate up",
                                    words,
                                    options,
                                    run,
                                    Tail::command};

}  // namespace holdfast::cli
