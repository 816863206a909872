// The lock of a database, and the process that works under it. The supervisor is that of `run`: two processes in a
// chain, of which the inner one holds the lease. The third is this program once more, which finds its lease in its
// environment, connects to the database and does the work.
#include "cli/database_work.hpp"

#include "cli/command.hpp"
#include "cli/report.hpp"
#include "cli/run_locks.hpp"
#include "cli/waiting_notice.hpp"
#include "config/places.hpp"
#include "guards/run/outer.hpp"
#include "guards/run/supervisor.hpp"
#include "guards/sql/migrate/database.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>

namespace holdfast::cli {
namespace {

namespace guard = guards::run;
namespace migrations = guards::migrate;
using std::chrono::milliseconds;

/// The lock_id of the lease that the supervisor of this process holds for it.
constexpr auto worker_variable = "HOLDFAST_WORKER_LEASE";
constexpr auto this_program = "/proc/self/exe";

/// The lease that somebody around this process holds for the lock `name`.
std::optional<FenceClaim> claim_of(const InheritedLease& lease) {
    if (!lease.token || !lease.store_id) return std::nullopt;
    return FenceClaim{lease.name, *lease.store_id, *lease.token, lease.as.lock_id};
}

Result<std::optional<FenceClaim>> claim_of_supervisor() {
    const auto lock_id = config::variable(worker_variable);
    if (!lock_id) return std::nullopt;
    const auto leases = inherited_leases();
    if (!leases) return std::unexpected(leases.error());
    for (const InheritedLease& lease : *leases)
        if (lease.as.lock_id.text() == *lock_id)
            if (auto claim = claim_of(lease)) return claim;
    return fail(Errc::usage, fmt::format("{} names no lease of HOLDFAST_LEASES; unset it", worker_variable));
}

Result<LockName> lock_of(const Context& context, const migrations::Database& database) {
    if (context.settings.given(opt::lock)) return LockName::parse(context.settings.text(opt::lock));
    const auto name = migrations::default_lock_of(database, context.clock, context.soon());
    if (!name) return std::unexpected(name.error());
    return LockName::parse(*name);
}

/// Works, and ends when it is asked to, with the statement cancelled at the server.
Result<int> work_here(Context& context, const migrations::Database& database, const std::optional<FenceClaim>& claim,
                      milliseconds ttl, const DatabaseWork& work) {
    const guard::Signals signals(guard::Signals::Take::requests_to_end);
    std::stop_source stop;
    const guard::StopListener listener(signals, stop);
    guards::FencedSessionOptions options;
    options.connect = [&] { return migrations::connect(database, context.clock, context.soon()); };
    options.claim = claim;
    options.ttl = ttl;
    options.stop = stop.get_token();
    options.clock = &context.clock;
    return work(std::move(options));
}

guard::Job worker_job(const Context& context, const std::string& url, milliseconds grace,
                      const std::vector<HeldLease>& held, const std::vector<InheritedLease>& inherited,
                      const WorkerVariables& variables) {
    guard::Job job;
    // A URL may hold a password, and others can read a command line.
    job.command = same_command(context, {opt::database.name, opt::store.name});
    job.grace = grace;
    job.notice = notice_on(context.out);
    job.environment = environment_with(leases_for_child(held, inherited), {});
    std::erase_if(job.environment, [](const std::string& each) {
        return each.starts_with("HOLDFAST_DATABASE=") || each.starts_with("HOLDFAST_STORE=");
    });
    job.environment.push_back("HOLDFAST_DATABASE=" + url);
    job.environment.push_back(fmt::format("{}={}", worker_variable, held.front().lease.as.lock_id.text()));
    for (const auto& [name, value] : variables) job.environment.push_back(fmt::format("{}={}", name, value));
    return job;
}

/// What the worker could not tell itself.
Result<int> conclude(Context& context, const guard::Verdict& verdict) {
    if (verdict.ending == guard::Ending::child_exit && verdict.code) return *verdict.code;
    if (verdict.ending == guard::Ending::lost) {
        // The worker has told what it was doing, if it had the time.
        const bool told = verdict.code && *verdict.code == row_of(Errc::lock_expired).exit_status;
        if (told) return *verdict.code;
        return fail(Errc::lock_expired,
                    fmt::format("the lease was lost, and the work was stopped{}{}", verdict.error ? ": " : "",
                                verdict.error ? verdict.error->message : ""));
    }
    if (verdict.error && verdict.ending != guard::Ending::child_exit) return std::unexpected(*verdict.error);
    if (verdict.signal) {
        context.out.note(fmt::format("holdfast: the work was ended by signal {}", *verdict.signal));
        return 128 + *verdict.signal;
    }
    return fail(Errc::outcome_unknown, "the process that did the work ended without a word");
}

Result<Plan> plan_of(const Context& context, const LockName& name) {
    Plan plan;
    plan.holder = context.holder();
    plan.operation = context.settings.given(opt::operation) ? context.settings.text(opt::operation)
                                                            : std::string(context.line.command->name);
    plan.names.push_back(name);
    auto terms = context.settings.terms_for(name);
    if (!terms) return std::unexpected(terms.error());
    plan.grace = std::min(milliseconds{5000}, std::min(terms->ttl.time(), terms->max_hold.value_or(Ttl::longest)) / 3);
    plan.terms.push_back(std::move(*terms));
    return plan;
}

Result<std::vector<Store*>> stores_of(Context& context, const std::string& url) {
    if (!context.settings.uses_default_store()) return context.stores();
    const auto lock_store = migrations::lock_store_of(url);
    if (!lock_store) return std::unexpected(lock_store.error());
    const auto store = context.use_store(*lock_store);
    if (!store) return std::unexpected(store.error());
    return std::vector{*store};
}

/// The inner process: takes the lock, holds it, and supervises the worker.
Result<int> run_inner(Context& context, const std::string& url, const Plan& plan, const WorkerVariables& variables,
                      const guard::Signals& signals, guard::OuterLink& outer) {
    const auto inherited = inherited_leases();
    if (!inherited) return std::unexpected(inherited.error());
    const auto stores = stores_of(context, url);
    if (!stores) return std::unexpected(stores.error());
    if (stores->size() > 1) return fail(Errc::usage, "the lock is taken on one store; name one");
    auto joined = join_outer(context, plan, *stores, *inherited);
    if (!joined) return std::unexpected(joined.error());
    const std::size_t joined_count = joined->size();
    WaitingNotice notice(context.out, context.clock);
    std::stop_source stop;
    std::optional<guard::StopListener> listener;
    listener.emplace(outer, stop);
    const auto blocked = [&](const Error& conflict, Store& store, const LockName& name) {
        if (plan.terms.front().wait > milliseconds{0}) notice.show(conflict, store, name);
    };
    auto taken = take(context, plan, *stores, *std::move(joined), {stop.get_token(), blocked});
    const auto signal = listener->finish();
    listener.reset();
    if (!taken) {
        if (signal) return 128 + *signal;
        return std::unexpected(taken.error());
    }
    guard::Guarded guarded{*std::move(taken), outer};
    if (signal) {
        if (auto released = guarded.group.release(); !released) return std::unexpected(released.error());
        return 128 + *signal;
    }
    const auto held = leases_of(guarded.group, joined_count, plan, *stores);
    const auto verdict = guard::supervise(worker_job(context, url, plan.grace, held, *inherited, variables), &guarded,
                                          signals, context.clock);
    auto ended = conclude(context, verdict);
    if (guarded.group.is_stuck()) {
        // A call to the store has not come back, and may never.
        const int status = ended ? *ended : exit_status(ended.error(), context.settings);
        static_cast<void>(context.out.flush());
        _exit(status);
    }
    return ended;
}

Result<int> supervised(Context& context, const std::string& url, const LockName& name,
                       const WorkerVariables& variables) {
    const auto plan = plan_of(context, name);
    if (!plan) return std::unexpected(plan.error());
    guard::Signals signals;
    const guard::OuterOptions options{guard::children(), notice_on(context.out)};
    auto chain = guard::fork_inner(signals);
    if (!chain) return std::unexpected(chain.error());
    if (auto* outer = std::get_if<guard::OuterLink>(&*chain))
        return run_inner(context, url, *plan, variables, signals, *outer);
    const auto ended =
        guard::guard_inner(std::move(std::get<guard::InnerLink>(*chain)), options, signals, context.clock);
    if (const int* status = std::get_if<int>(&ended)) return *status;
    return conclude(context, std::get<guard::Verdict>(ended));
}

}  // namespace

std::function<void(const std::string&)> notice_on(const Output& out) {
    return [&out](const std::string& text) { out.note("holdfast: " + printable(text)); };
}

Result<std::vector<std::string>> database_urls(const Context& context) {
    if (auto urls = context.settings.texts(opt::database); !urls.empty()) {
        if (std::ranges::all_of(urls, migrations::is_sql_url)) return urls;
        return fail(Errc::usage, "--database is the URL of a SQL database: sqlite:FILE, postgres://… or mysql://…");
    }
    if (!context.settings.uses_default_store()) {
        const auto url = context.settings.store_url();
        if (!url) return std::unexpected(url.error());
        if (migrations::is_sql_url(*url)) return std::vector{*url};
    }
    return fail(Errc::usage, "which database? name it with --database URL or HOLDFAST_DATABASE");
}

Result<std::string> database_url(const Context& context) {
    auto urls = database_urls(context);
    if (!urls) return std::unexpected(urls.error());
    return std::move(urls->front());
}

std::vector<std::string> same_command(const Context& context, std::initializer_list<std::string_view> left_out) {
    std::vector<std::string> command{this_program};
    const std::string_view name = context.line.command->name;
    const auto space = name.find(' ');
    command.emplace_back(name.substr(0, space));
    command.emplace_back(name.substr(space + 1));
    for (const std::string& word : context.line.words) command.push_back(word);
    for (const Option* option : options_of(*context.line.command)) {
        const auto values = context.line.given.find(option->name);
        const bool is_left_out = std::ranges::find(left_out, option->name) != left_out.end();
        if (values == context.line.given.end() || is_left_out) continue;
        for (const std::string& value : values->second) command.push_back(fmt::format("--{}={}", option->name, value));
    }
    return command;
}

bool is_worker() { return config::variable(worker_variable).has_value(); }

Result<int> under_lock(Context& context, const migrations::Database& database, const DatabaseWork& work,
                       const WorkerVariables& variables) {
    const auto claim = claim_of_supervisor();
    if (!claim) return std::unexpected(claim.error());
    if (*claim) {
        const auto terms = context.settings.terms_for((*claim)->name);
        if (!terms) return std::unexpected(terms.error());
        return work_here(context, database, *claim, terms->ttl.time(), work);
    }
    if (context.settings.on(opt::no_lock)) {
        Output::warn("holdfast: warning: working without the lock and without the fence, as --no-lock says");
        return work_here(context, database, std::nullopt, milliseconds{30'000}, work);
    }
    const auto name = lock_of(context, database);
    if (!name) return std::unexpected(name.error());
    return supervised(context, database.url, *name, variables);
}

}  // namespace holdfast::cli
