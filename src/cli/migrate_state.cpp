// `holdfast migrate status`, `wait` and `verify`: what is there, without the lock and without writing.
#include "cli/command.hpp"
#include "cli/migrate.hpp"
#include "cli/signals.hpp"
#include "guards/sql/migrate/objects.hpp"
#include "guards/sql/migrate/plan.hpp"
#include "json/migrate.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <poll.h>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr Option timeout_option{{"timeout", Takes::one, "5m", "", From::environment},
                                '\0',
                                "D",
                                "How long to wait for another process to migrate."};
constexpr milliseconds between_looks{1000};

/// One line of the status.
struct Item {
    std::string version{};
    std::string name{};
    std::string state{};
    const migrations::LedgerRow* row = nullptr;
};

std::string state_of(const migrations::LedgerRow& row, const migrations::MigrationFile* file) {
    if (row.status != migrations::Status::applied) return std::string(name_of(row.status));
    if (file == nullptr) return "missing";
    if (file->checksum != row.checksum) return row.is_repeatable() ? "changed" : "edited";
    return "applied";
}

std::vector<Item> items_of(const migrations::Folder& folder, const migrations::Ledger& ledger) {
    std::vector<Item> items;
    const std::uint64_t newest = migrations::highest_applied(ledger);
    std::uint64_t baseline = 0;
    for (const migrations::LedgerRow& row : ledger)
        if (row.status == migrations::Status::baseline) baseline = std::max(baseline, row.number());
    const auto add = [&](const std::vector<migrations::MigrationFile>& files, bool repeatable) {
        for (const migrations::LedgerRow& row : ledger) {
            if (row.is_repeatable() != repeatable) continue;
            const auto file = std::ranges::find(files, row.version, &migrations::MigrationFile::version);
            items.push_back({row.version, row.name, state_of(row, file == files.end() ? nullptr : &*file), &row});
        }
        for (const migrations::MigrationFile& file : files) {
            if (std::ranges::find(ledger, file.version, &migrations::LedgerRow::version) != ledger.end()) continue;
            const bool covered = !repeatable && file.number <= baseline;
            const bool late = !repeatable && !covered && file.number < newest;
            items.push_back({file.version, file.name,
                             covered ? "baseline"
                             : late  ? "out of order"
                                     : "pending",
                             nullptr});
        }
    };
    add(folder.versioned, false);
    add(folder.repeatable, true);
    std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
        const auto key = [](const Item& item) {
            const bool repeatable = item.version.starts_with("R__");
            return std::tuple(repeatable, repeatable ? 0 : std::stoull(item.version));
        };
        return key(a) < key(b);
    });
    return items;
}

json::Migration value_of(const Item& item) {
    json::Migration value{.version = item.version, .name = item.name, .state = item.state};
    if (item.row != nullptr)
        value.applied = json::Migration::Applied{.token = item.row->token,
                                                 .at = item.row->applied_at,
                                                 .by = item.row->applied_by,
                                                 .duration_ms = item.row->duration_ms,
                                                 .statements = item.row->statements_done};
    return value;
}

Colour colour_of(std::string_view state) {
    if (state == "applied" || state == "baseline") return Colour::green;
    return state == "pending" || state == "changed" ? Colour::yellow : Colour::red;
}

Result<int> show_status(Context& context, const migrations::Database& database) {
    const auto folder = folder_of(context);
    if (!folder) return std::unexpected(folder.error());
    const auto ledger = migrations::ledger_of(database, context.clock, context.soon());
    if (!ledger) return std::unexpected(ledger.error());
    const auto items = items_of(*folder, *ledger);
    if (context.out.style().json) {
        std::vector<json::Migration> all;
        for (const Item& item : items) all.push_back(value_of(item));
        context.out.document(json::migration_status(all).done());
        return 0;
    }
    std::vector<Row> rows;
    for (const Item& item : items)
        rows.push_back({{item.version, item.state, printable(item.name),
                         item.row == nullptr ? "" : printable(item.row->applied_at),
                         item.row == nullptr ? "" : printable(item.row->applied_by)},
                        colour_of(item.state)});
    if (rows.empty()) {
        context.out.note("there are no migrations");
    } else {
        context.out.table({"VERSION", "STATE", "NAME", "AT", "BY"}, rows);
    }
    return 0;
}

/// How many files are pending; an error where nothing can run.
Result<std::size_t> count_pending(const Context& context, const migrations::Database& database,
                                  const migrations::Folder& folder) {
    const auto ledger = migrations::ledger_of(database, context.clock, context.soon());
    if (!ledger) return std::unexpected(ledger.error());
    const auto plan = migrations::plan_up(folder, *ledger, {});
    if (!plan) return std::unexpected(plan.error());
    return plan->steps.size();
}

Result<int> wait_for(Context& context, const migrations::Database& database) {
    const auto folder = folder_of(context);
    if (!folder) return std::unexpected(folder.error());
    const auto timeout = context.settings.duration(timeout_option);
    if (!timeout) return std::unexpected(timeout.error());
    const Deadline deadline = Deadline::in(context.clock, *timeout);
    while (true) {
        const auto pending = count_pending(context, database, *folder);
        const bool not_there = !pending && pending.error().code == Errc::store_unavailable;
        if (!pending && !not_there) return std::unexpected(pending.error());
        if (pending && *pending == 0) return 0;
        if (deadline.passed(context.clock)) {
            if (not_there) return std::unexpected(pending.error());
            return fail(Errc::lock_conflict,
                        fmt::format("{} migrations are still pending after {}", *pending, to_words(*timeout)));
        }
        const milliseconds nap = std::min(between_looks, deadline.remaining(context.clock));
        poll(nullptr, 0, static_cast<int>(nap.count()));
    }
}

std::string words_of(const migrations::Drift& drift) {
    const std::string object = fmt::format("{} {}", drift.object.first, printable(drift.object.second));
    switch (drift.kind) {
        case migrations::Drift::Kind::changed: return object + " was changed by hand";
        case migrations::Drift::Kind::missing: return object + " is missing";
        case migrations::Drift::Kind::not_ours: break;
    }
    return object + " was made by no migration";
}

std::vector<json::SchemaObject> list_of(const std::vector<migrations::Drift>& drifts, migrations::Drift::Kind kind) {
    std::vector<json::SchemaObject> items;
    for (const migrations::Drift& drift : drifts)
        if (drift.kind == kind) items.push_back({drift.object.first, drift.object.second});
    return items;
}

Result<int> verify(Context& context, const migrations::Database& database) {
    const auto folder = folder_of(context);
    if (!folder) return std::unexpected(folder.error());
    const auto look = migrations::look_at(database, context.clock, context.soon());
    if (!look) return std::unexpected(look.error());
    // Files that were edited, are missing or out of order.
    if (const auto plan = migrations::plan_up(*folder, look->ledger, {}); !plan) return std::unexpected(plan.error());
    const auto drifts = migrations::find_drift(*look->session, look->table, context.soon());
    if (!drifts) return std::unexpected(drifts.error());
    const bool drifted =
        std::ranges::any_of(*drifts, [](const auto& each) { return each.kind != migrations::Drift::Kind::not_ours; });
    if (context.out.style().json) {
        context.out.document(json::schema_drift(list_of(*drifts, migrations::Drift::Kind::changed),
                                                list_of(*drifts, migrations::Drift::Kind::missing),
                                                list_of(*drifts, migrations::Drift::Kind::not_ours))
                                 .done());
    } else {
        for (const migrations::Drift& drift : *drifts) context.out.line(words_of(drift));
        if (!drifted && context.out.tells_success()) context.out.note("the schema is as the migrations left it");
    }
    return drifted ? row_of(Errc::drift).exit_status : 0;
}

Result<int> run_status(Context& context) { return on_each_database(context, show_status); }
Result<int> run_wait(Context& context) { return on_each_database(context, wait_for); }
Result<int> run_verify(Context& context) { return on_each_database(context, verify); }

constexpr std::array status_options{opt::databases, opt::schema, opt::schemas_like, opt::parallel, opt::dir};
constexpr std::array wait_options{opt::databases, opt::schema, opt::schemas_like,
                                  opt::parallel,  opt::dir,    timeout_option};

}  // namespace

constinit const Command migrate_status_command{
    "migrate status",
    "",
    "Show what was applied and what is pending",
    "A line for each file and each row of holdfast_migrations: applied, pending, baseline; running or failed where one "
    "stopped half way; edited, missing or out of order where files and database do not fit. Reads only.",
    {},
    status_options,
    run_status};

constinit const Command migrate_wait_command{"migrate wait",
                                             "",
                                             "Wait until nothing is pending",
                                             "For processes that let another one migrate, such as the containers of an "
                                             "application: returns when the database has all "
                                             "files of the folder. Takes no lock and writes nothing. The exit status "
                                             "is 75 when the time is over, 83 when the database "
                                             "needs a decision.",
                                             {},
                                             wait_options,
                                             run_wait};

constinit const Command migrate_verify_command{"migrate verify",
                                               "",
                                               "Find what was changed by hand",
                                               "Compares each table, index, view, function and trigger that migrations "
                                               "have made with what the last run left. What was "
                                               "changed or is missing is named, and the exit status is 83. Objects "
                                               "that no migration made are listed and are no error.",
                                               {},
                                               status_options,
                                               run_verify};

}  // namespace holdfast::cli
