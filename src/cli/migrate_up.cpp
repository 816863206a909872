// `holdfast migrate up` and `down`: what has to run is worked out without the lock, and again under it; it is shown and
// confirmed, and what runs is what was confirmed.
#include "cli/command.hpp"
#include "cli/migrate.hpp"
#include "cli/progress_line.hpp"
#include "cli/prompt.hpp"
#include "guards/sql/migrate/objects.hpp"
#include "guards/sql/migrate/plan.hpp"
#include "json/migrate.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unistd.h>

namespace holdfast::cli {
namespace {

constexpr Option steps_option{
    {"steps", Takes::one, "1", "", From::command_line}, '\0', "N", "How many files to take back; the newest first."};

enum class Direction { up, down };

/// All that is known before the lock is taken.
struct Job {
    Direction direction;
    migrations::Database database;
    migrations::Folder folder{};
    migrations::PlanOptions up{};
    migrations::DownOptions down{};
    migrations::Placeholders placeholders{};

    [[nodiscard]] Result<migrations::Plan> plan(const migrations::Ledger& ledger) const {
        return direction == Direction::up ? migrations::plan_up(folder, ledger, up)
                                          : migrations::plan_down(folder, ledger, down);
    }

    /// Everything that can be wrong with the files is found before anything is touched.
    [[nodiscard]] Result<std::vector<migrations::Script>> scripts(const migrations::Plan& plan) const {
        std::vector<migrations::Script> scripts;
        for (const migrations::Step& step : plan.steps) {
            auto script = migrations::Script::of(*step.file, placeholders, migrations::dialect_of(database.url));
            if (!script) return std::unexpected(script.error());
            scripts.push_back(*std::move(script));
        }
        return scripts;
    }
};

Result<Job> job_of(const Context& context, const migrations::Database& database, Direction direction) {
    Job job{.direction = direction, .database = database};
    auto folder = folder_of(context);
    if (!folder) return std::unexpected(folder.error());
    job.folder = *std::move(folder);
    const auto to = version_asked_for(context);
    if (!to) return std::unexpected(to.error());
    job.up.to = *to;
    job.down.to = *to;
    if (direction == Direction::up && context.settings.on(opt::out_of_order))
        job.up.out_of_order = migrations::OutOfOrder::allowed;
    if (direction == Direction::down) {
        const auto steps = context.settings.number(steps_option, 1'000'000);
        if (!steps) return std::unexpected(steps.error());
        job.down.steps = *steps;
    }
    job.placeholders = placeholders_of(context);
    return job;
}

std::vector<json::Migration> names_of(const migrations::Plan& plan, std::size_t from) {
    std::vector<json::Migration> items;
    for (std::size_t i = from; i < plan.steps.size(); ++i)
        items.push_back({.version = plan.steps[i].file->version, .name = plan.steps[i].file->name});
    return items;
}

void print_document(Context& context, const Job& job, const std::vector<json::Migration>& done,
                    const migrations::Plan& plan) {
    const std::string_view done_as = job.direction == Direction::up ? "applied" : "reverted";
    context.out.document(json::migrated(done_as, done, names_of(plan, done.size()), plan.warnings).done());
}

json::Migration item_of(const migrations::LedgerRow& row) {
    return {.version = row.version,
            .name = row.name,
            .applied = json::Migration::Applied{
                .token = row.token, .duration_ms = row.duration_ms, .statements = row.statements_done}};
}

void show_plan(const Context& context, const Job& job, const migrations::Plan& plan) {
    for (const migrations::Step& step : plan.steps)
        context.out.note(
            fmt::format("  {} {}{}", job.direction == Direction::up ? "up" : "down", label_of(*step.file),
                        step.resumed ? fmt::format(", goes on after {} statements", step.statements_done) : ""));
}

/// Nothing has to run, or --dry-run.
int finish_early(Context& context, const Job& job, const migrations::Plan& plan) {
    for (const std::string& warning : plan.warnings) Output::warn("holdfast: warning: " + warning);
    if (context.out.style().json) {
        print_document(context, job, {}, plan);
    } else if (!plan.steps.empty()) {
        for (const migrations::Step& step : plan.steps) context.out.line(label_of(*step.file));
    } else if (context.out.tells_success()) {
        context.out.note(job.direction == Direction::up ? "nothing is pending" : "nothing is applied");
    }
    return 0;
}

class Applying {
public:
    Applying(Context& context, const Job& job, migrations::Runner& runner)
        : context_(context), job_(job), runner_(runner) {}

    Result<int> run() {
        auto ledger = runner_.ledger();
        if (!ledger) return std::unexpected(ledger.error());
        auto plan = job_.plan(*ledger);
        if (!plan) return std::unexpected(plan.error());
        if (plan->steps.empty()) return finish_early(context_, job_, *plan);
        auto scripts = job_.scripts(*plan);
        if (!scripts) return std::unexpected(scripts.error());
        for (const std::string& warning : plan->warnings) Output::warn("holdfast: warning: " + warning);
        if (!context_.settings.on(opt::yes) || context_.out.tells_success()) show_plan(context_, job_, *plan);
        const auto agreed = confirm(
            context_, fmt::format("run {} file{} on {}?", plan->steps.size(), plan->steps.size() == 1 ? "" : "s",
                                  printable(migrations::shown(job_.database))));
        if (!agreed) return std::unexpected(agreed.error());
        if (!*agreed) return fail(Errc::usage, "nothing was changed: it was not confirmed");
        if (auto begun = remember_objects(); !begun) return std::unexpected(begun.error());
        const auto ran = run_all(*plan, *scripts, *ledger);
        const auto kept = keep_objects();
        if (!ran) return std::unexpected(ran.error());
        if (!kept) return std::unexpected(kept.error());
        report(*plan);
        return 0;
    }

private:
    Result<void> remember_objects() {
        auto before = migrations::begin_objects(runner_);
        if (!before) return std::unexpected(before.error());
        before_ = *std::move(before);
        return {};
    }

    /// After a failure, too: what was committed is ours.
    Result<void> keep_objects() {
        if (!runner_.session().is_usable()) return {};
        return migrations::keep_objects(runner_, before_);
    }

    Result<void> run_all(const migrations::Plan& plan, const std::vector<migrations::Script>& scripts,
                         const migrations::Ledger& ledger) {
        const ProgressLine progress(context_.out.style());
        for (std::size_t i = 0; i < scripts.size(); ++i) {
            progress.show(fmt::format("{}/{} {}", i + 1, scripts.size(), label_of(*scripts[i].file)));
            auto done = run_one(plan.steps[i], scripts[i], ledger);
            if (!done) return done;
        }
        return {};
    }

    Result<void> run_one(const migrations::Step& step, const migrations::Script& script,
                         const migrations::Ledger& ledger) {
        if (job_.direction == Direction::down) {
            if (auto back = runner_.down(script); !back) return back;
            migrations::LedgerRow row;
            row.version = step.file->version;
            row.name = step.file->name;
            row.statements_done = static_cast<std::int64_t>(script.statements.size());
            done_.push_back(item_of(row));
            return {};
        }
        std::optional<migrations::LedgerRow> begun;
        if (step.resumed) {
            begun = *std::ranges::find(ledger, step.file->version, &migrations::LedgerRow::version);
            const auto settled = runner_.settle(script, *begun);
            if (!settled) return std::unexpected(settled.error());
            begun->statements_done = *settled;
            context_.out.note(fmt::format("holdfast: {} goes on after statement {}", label_of(*step.file), *settled));
        }
        const auto row = runner_.up(script, begun);
        if (!row) return std::unexpected(row.error());
        done_.push_back(item_of(*row));
        return {};
    }

    void report(const migrations::Plan& plan) {
        if (context_.out.style().json) return print_document(context_, job_, done_, plan);
        if (!context_.out.tells_success()) return;
        for (const migrations::Step& step : plan.steps)
            context_.out.note(
                fmt::format("{} {}", job_.direction == Direction::up ? "applied" : "took back", label_of(*step.file)));
    }

    Context& context_;
    const Job& job_;
    migrations::Runner& runner_;
    migrations::ObjectsBefore before_{};
    std::vector<json::Migration> done_{};
};

Result<int> run_direction(Context& context, const migrations::Database& database, Direction direction) {
    const auto job = job_of(context, database, direction);
    if (!job) return std::unexpected(job.error());
    if (!is_worker()) {
        // Without the lock, and without creating anything: most calls find nothing to do.
        const auto ledger = migrations::ledger_of(job->database, context.clock, context.soon());
        if (!ledger) return std::unexpected(ledger.error());
        const auto plan = job->plan(*ledger);
        if (!plan) return std::unexpected(plan.error());
        if (const auto scripts = job->scripts(*plan); !scripts) return std::unexpected(scripts.error());
        if (plan->steps.empty() || context.settings.on(opt::dry_run)) return finish_early(context, *job, *plan);
        const bool can_ask = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
        if (!context.settings.on(opt::yes) && !can_ask)
            return fail(Errc::usage,
                        fmt::format("{} files would run, and nobody can be asked here; repeat it with --yes, or "
                                    "with --dry-run to see them",
                                    plan->steps.size()));
    }
    return migrate_under_lock(context, job->database,
                              [&](migrations::Runner& runner) { return Applying(context, *job, runner).run(); });
}

Result<int> run_on_each(Context& context, Direction direction) {
    return on_each_database(context, [direction](Context& one, const migrations::Database& database) {
        return run_direction(one, database, direction);
    });
}

Result<int> run_up(Context& context) { return run_on_each(context, Direction::up); }
Result<int> run_down(Context& context) { return run_on_each(context, Direction::down); }

constexpr std::array up_options{opt::databases,  opt::schema,  opt::schemas_like, opt::parallel,     opt::dir,
                                opt::to_version, opt::dry_run, opt::yes,          opt::out_of_order, opt::placeholder,
                                opt::lock,       opt::ttl,     opt::wait,         opt::no_wait,      opt::operation,
                                opt::reason,     opt::holder,  opt::user,         opt::if_held,      opt::no_lock};
constexpr std::array down_options{opt::databases,  opt::schema,  opt::schemas_like, opt::parallel, opt::dir,
                                  opt::to_version, steps_option, opt::dry_run,      opt::yes,      opt::placeholder,
                                  opt::lock,       opt::ttl,     opt::wait,         opt::no_wait,  opt::operation,
                                  opt::reason,     opt::holder,  opt::user,         opt::if_held,  opt::no_lock};

}  // namespace

constinit const Command migrate_up_command{
    "migrate up",
    "",
    "Apply the migrations that are pending",
    "Runs the files of the folder that the database has not seen yet, in the order of their numbers: "
    "<digits>_<name>.sql, then R__<name>.sql whose text changed. With nothing to do it ends at once, without the lock. "
    "Otherwise it takes the lock, looks again, shows the files, asks, and runs them behind the fence.\n\n"
    "Each file runs in one transaction together with its row of holdfast_migrations, where the database can take "
    "schema "
    "changes back; \"-- holdfast: no-transaction\" in its first lines is for statements that cannot be in one. In "
    "MySQL, "
    "where each schema change commits by itself, the table counts statements, and a file goes on where it stopped.\n\n"
    "A statement that waits for a lock is taken back after two seconds and tried again, so that nobody waits behind it "
    "for "
    "longer; the session that is in the way is named.\n\n"
    "Example: holdfast migrate up --database postgres:///app --yes",
    {},
    up_options,
    run_up};

constinit const Command migrate_down_command{
    "migrate down",
    "",
    "Take migrations back",
    "Runs <digits>_<name>.down.sql of the newest file that was applied, or of more "
    "with --steps or --to. For development: what was in a dropped table does not come "
    "back.\n\nExample: holdfast migrate down --database sqlite:app.db --yes",
    {},
    down_options,
    run_down};

}  // namespace holdfast::cli
