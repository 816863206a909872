#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/lease_environment.hpp"
#include "cli/report.hpp"
#include "cli/run_locks.hpp"
#include "client/policy.hpp"
#include "guards/run/supervisor.hpp"
#include "holdfast/hold.hpp"
#include "json/documents.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unistd.h>

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

Result<milliseconds> grace_for(const Context& context, milliseconds shortest_ttl) {
    const auto asked = context.settings.duration(grace_option);
    if (!asked) return asked;
    if (!context.settings.given(grace_option)) return std::min(*asked, shortest_ttl / 3);
    if (*asked > shortest_ttl / 2)
        return fail(
            Errc::usage,
            fmt::format(
                "a grace of {} is more than half of the {} that a lease lasts: there would be no time left to work",
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
    for (auto each = plan.names.begin(); each != plan.names.end(); ++each)
        if (std::find(plan.names.begin(), each, *each) != each)
            return fail(Errc::usage, "the same lock is asked for twice: " + each->text());
    if (context.line.tail.empty())
        return fail(Errc::usage, "run needs a command after --: holdfast run NAME -- CMD ARG...");

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

/// Waiting for the locks: says who is in the way, and ends at once when a stop signal comes.
class Waiting {
public:
    Waiting(const Context& context, const guard::Signals& signals, bool waits)
        : context_(context), signals_(signals), waits_(waits) {}

    [[nodiscard]] WaitHooks hooks() {
        return {stop_.get_token(), [this](const Error& conflict) { blocked(conflict); }};
    }

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

std::string named(const std::vector<guard::Relative>& left_over) {
    std::vector<std::string> names;
    for (const auto& relative : left_over)
        names.push_back(relative.pid == 0 ? relative.name
                                          : fmt::format("{} (pid {})", printable(relative.name), relative.pid));
    return fmt::format("{}", fmt::join(names, ", "));
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
            if (!verdict.code && !verdict.signal) return fmt::format("{}: the command was not started{}", name, why);
            if (!verdict.out_of_reach.empty())
                return fmt::format("{}: the lease was lost, and what runs as another user could not be stopped: {}{}",
                                   name, named(verdict.out_of_reach), why);
            return fmt::format("{}: the lease was lost and the command was stopped{}{}", name,
                               verdict.left_over.empty() ? "" : ", but still running: " + named(verdict.left_over),
                               why);
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
                       named(verdict.left_over));
}

json::Value number_or_null(const std::optional<int>& number) {
    return number ? json::Value::number(std::int64_t{*number}) : json::Value();
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
    std::vector<json::Value> locks;
    for (const auto& [lease, joined] : leases)
        locks.push_back(json::Object()
                            .set("name", json::Value::text(lease.name.text()))
                            .set("token", lease.token ? json::Value::number(lease.token->value) : json::Value())
                            .set("lock_id", json::Value::text(lease.as.lock_id.text()))
                            .set("store_id", lease.store_id ? json::Value::text(lease.store_id->text()) : json::Value())
                            .set("joined", json::Value::boolean(joined == Joined::yes))
                            .done());
    std::vector<json::Value> left_over;
    for (const auto& relative : verdict.left_over)
        left_over.push_back(
            json::Object()
                .set("pid", relative.pid == 0 ? json::Value() : json::Value::number(std::int64_t{relative.pid}))
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
    document.set(
        "error",
        verdict.error
            ? json::error_body(*verdict.error, hint_for(*verdict.error, &context.settings), context.info()).done()
            : json::Value());
    context.out.document(document.done());
}

guard::Job job_of(const Context& context, const Plan& plan, const std::vector<InheritedLease>& leases) {
    guard::Job job;
    job.command = context.line.tail;
    job.grace = plan.grace;
    job.mark = LockId::random().text();
    job.environment =
        environment_with(leases, job.mark, context.settings.store_for_child(),
                         context.settings.given(opt::store) && !context.settings.in_environment(opt::store));
    job.notice = [&context](const std::string& text) { context.out.note("holdfast: " + text); };
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
        else if (skip && context.out.tells_success())
            context.out.note("holdfast: skipped: " + printable(error.message));
        else if (!skip)
            return std::unexpected(error);
        return status;
    }
    const std::string_view outcome = signal ? "interrupted" : skip ? "skipped" : "not_acquired";
    context.out.document(
        json::Object()
            .set("outcome", json::Value::text(outcome))
            .set("exit_code", json::Value::number(std::int64_t{status}))
            .set("child", json::Object().set("code", json::Value()).set("signal", json::Value()).done())
            .set("error", json::error_body(error, hint_for(error, &context.settings), context.info()).done())
            .done());
    return status;
}

Result<int> run(Context& context) {
    auto planned = plan(context);
    if (!planned) return std::unexpected(planned.error());
    if (context.settings.on(no_lock)) return run_unguarded(context, *planned);
    const auto inherited = inherited_leases();
    if (!inherited) return std::unexpected(inherited.error());

    const guard::Signals signals;
    const bool waits =
        std::ranges::any_of(planned->terms, [](const auto& terms) { return terms.wait > milliseconds{0}; });
    Waiting waiting(context, signals, waits);
    auto watchdog = guard::Watchdog::start(planned->grace);
    if (!watchdog) {
        guard::Verdict verdict;
        verdict.error = watchdog.error();
        conclude(context, *planned, verdict, {});
        return status_of(verdict);
    }
    const auto stores = context.stores();
    if (!stores) return not_acquired(context, stores.error(), std::nullopt);
    auto joined = join_outer(context, *planned, *stores, *inherited);
    if (!joined) return not_acquired(context, joined.error(), std::nullopt);
    const std::size_t joined_count = joined->size();
    // How long a joined lease lasts is known only now.
    const auto grace = grace_for(context, shortest_lease(*planned, *stores, *joined));
    if (!grace) return not_acquired(context, grace.error(), std::nullopt);
    planned->grace = *grace;
    auto taken = take(context, *planned, *stores, *std::move(joined), waiting.hooks());
    const auto signal = waiting.finish();
    if (!taken) return not_acquired(context, taken.error(), signal);
    guard::Guarded guarded{*std::move(taken), *std::move(watchdog)};
    if (signal) {
        // The grant came in the same moment. Nobody is there any more to use it.
        if (auto released = guarded.group.release(); !released) return std::unexpected(released.error());
        return not_acquired(context, {Errc::lock_conflict, "stopped by a signal while waiting"}, signal);
    }

    const auto leases = leases_of(guarded.group, joined_count, *planned, *stores);
    const guard::Job job = job_of(context, *planned, leases_for_child(leases, *inherited));
    const auto verdict = guard::supervise(job, &guarded, signals, context.clock);
    conclude(context, *planned, verdict, leases);
    if (guarded.group.is_stuck()) {
        // A call to the store has not come back, and may never. The lease is over for us, so nobody waits for it.
        static_cast<void>(context.out.flush());
        _exit(status_of(verdict));
    }
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
                                    "HOLDFAST_EXPIRES_AT in its environment, and all of its leases in HOLDFAST_LEASES. "
                                    "A holdfast command inside that asks for the same lock joins it: it neither waits "
                                    "nor releases, and ends its own command when the lease is lost.\n\n"
                                    "Example: holdfast run migrate/prod --wait 5m -- ./migrate up",
                                    words,
                                    options,
                                    run,
                                    Tail::command};

}  // namespace holdfast::cli
