// `holdfast data sync`: the files are read and compared with the tables before the lock is taken; what is written under
// it are the same bytes.
#include "json/data.hpp"

#include "cli/command.hpp"
#include "cli/database_work.hpp"
#include "cli/progress_line.hpp"
#include "config/places.hpp"
#include "guards/sql/data/sync.hpp"
#include "guards/sql/migrate/database.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

namespace data = guards::data;

constexpr Option data_dir_option{{"data-dir", Takes::one, "data", "", From::environment},
                                 '\0',
                                 "D",
                                 "The folder that has a folder with files for each table."};
/// The digest of what was read before the lock was taken, for the worker.
constexpr auto digest_variable = "HOLDFAST_WORKER_DATA";

Result<std::vector<data::TableSpec>> tables_of(const Context& context) {
    std::vector<data::TableSpec> specs;
    for (const config::DataTable& table : context.settings.data_tables()) {
        const auto strategy = data::strategy_of(table.strategy);
        if (!strategy)
            return fail(Errc::config,
                        fmt::format("{}:{}: strategy: it is one of truncate, upsert, insert_missing, mirror",
                                    printable(context.settings.config_path()), table.line));
        specs.push_back({table.name, *strategy, table.key});
    }
    if (!specs.empty()) return specs;
    return fail(Errc::config, context.settings.config_path().empty()
                                  ? std::string("no holdfast.toml was found; it lists the tables as [[data.table]]")
                                  : fmt::format("{} lists no table; write [[data.table]] with name and strategy",
                                                printable(context.settings.config_path())));
}

int report(Context& context, const std::vector<data::TableCounts>& all) {
    const bool dry_run = context.settings.on(opt::dry_run);
    if (context.out.style().json) {
        std::vector<json::SyncedTable> tables;
        for (const data::TableCounts& each : all)
            tables.push_back({each.source->spec.name, data::name_of(each.source->spec.strategy), each.rows,
                              each.inserted, each.updated, each.deleted, each.unchanged});
        context.out.document(json::synced(dry_run, tables).done());
        return 0;
    }
    if (!dry_run && !context.out.tells_success()) return 0;
    std::vector<Row> rows;
    for (const data::TableCounts& each : all)
        rows.push_back({{printable(each.source->spec.name), std::string(data::name_of(each.source->spec.strategy)),
                         std::to_string(each.rows), std::to_string(each.inserted), std::to_string(each.updated),
                         std::to_string(each.deleted), std::to_string(each.unchanged)}});
    context.out.table({"TABLE", "STRATEGY", "ROWS", "INSERTED", "UPDATED", "DELETED", "UNCHANGED"}, rows);
    return 0;
}

data::SyncOptions options_of(const Context& context, const ProgressLine& progress, std::string digest) {
    data::SyncOptions options;
    options.digest = std::move(digest);
    options.notice = notice_on(context.out);
    options.progress = [&progress](const data::TableSource& table, std::int64_t rows) {
        progress.show(fmt::format("{}: {} rows", printable(table.spec.name), rows));
    };
    return options;
}

Result<int> show_counts(Context& context, const std::string& url, const data::Source& source,
                        const std::string& digest) {
    auto session = guards::FencedSession::open(
        {.connect = [&] { return guards::migrate::connect_if_there(url, context.clock, context.soon()); },
         .clock = &context.clock});
    if (!session) return std::unexpected(session.error());
    const ProgressLine progress(context.out.style());
    const auto counts = data::preview(*session, source, options_of(context, progress, digest));
    if (!counts) return std::unexpected(counts.error());
    return report(context, *counts);
}

/// Before anything is touched: no lock is taken, and no table of ours is made, for files that do not fit.
Result<void> compare_with_tables(const Context& context, const std::string& url, const data::Source& source) {
    const auto session = guards::migrate::connect_if_there(url, context.clock, context.soon());
    if (!session) return std::unexpected(session.error());
    if (const auto plan = data::plan_sync(**session, source, context.soon()); !plan)
        return std::unexpected(plan.error());
    return {};
}

Result<int> run_sync(Context& context) {
    const auto url = database_url(context);
    if (!url) return std::unexpected(url.error());
    const auto tables = tables_of(context);
    if (!tables) return std::unexpected(tables.error());
    const auto source = data::Source::open(context.settings.text(data_dir_option), *tables);
    if (!source) return std::unexpected(source.error());
    std::string digest = is_worker() ? config::variable(digest_variable).value_or("") : "";
    if (digest.empty()) {
        auto checked = source->check();
        if (!checked) return std::unexpected(checked.error());
        digest = *std::move(checked);
        if (context.settings.on(opt::dry_run)) return show_counts(context, *url, *source, digest);
        if (auto fits = compare_with_tables(context, *url, *source); !fits) return std::unexpected(fits.error());
    }
    const auto work = [&](guards::FencedSessionOptions options) -> Result<int> {
        auto session = guards::FencedSession::open(std::move(options));
        if (!session) return std::unexpected(session.error());
        const ProgressLine progress(context.out.style());
        const auto counts = data::sync(*session, *source, options_of(context, progress, digest));
        if (!counts) return std::unexpected(counts.error());
        return report(context, *counts);
    };
    return under_lock(context, *url, work, {{digest_variable, digest}});
}

constexpr std::array sync_options{opt::database, data_dir_option, opt::dry_run,   opt::lock,   opt::ttl,
                                  opt::wait,     opt::no_wait,    opt::operation, opt::reason, opt::holder,
                                  opt::user,     opt::if_held,    opt::no_lock};

}  // namespace

constinit const Command data_sync_command{
    "data sync",
    "",
    "Bring tables to what CSV and YAML files say",
    "Reads <data-dir>/<table>/*.csv and *.yaml for each table that holdfast.toml lists as [[data.table]], with name, "
    "strategy and key. All tables are written in one transaction, under the lock of the database's migrations and "
    "behind the fence; after an error nothing of it is there.\n\n"
    "Strategies: truncate replaces all rows; upsert adds and changes those of the files; insert_missing adds those "
    "whose key is not there; mirror is upsert, and deletes rows that no file has. In CSV an empty field is NULL and "
    "\"\" is an empty text; nothing is taken for a number, so 007 stays 007. Files that cannot be read, or do not fit "
    "their table, are refused with their line before anything is touched: exit status 65.\n\n"
    "Example: holdfast data sync --database postgres:///app --dry-run",
    {},
    sync_options,
    run_sync,
    Tail::words,
    Loads::yaml};

}  // namespace holdfast::cli
