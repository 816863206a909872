// What concerns a store as a whole: doctor, init, and the version that knows it.
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/doctor_database.hpp"
#include "cli/migrate.hpp"
#include "guards/sql/fence.hpp"
#include "holdfast/open.hpp"
#include "json/fence.hpp"
#include "json/store.hpp"
#include "sql/session.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

constexpr Option strict{{"strict", Takes::nothing, "", "", From::environment},
                        '\0',
                        "",
                        "Fail with status 78 also if the grade is below A."};
constexpr std::array doctor_options{strict, opt::database, opt::dir};

std::string in_words(const StoreProperties& store) {
    return fmt::format(
        "{}; {}; {}; changes several locks {}; its clock counts {} ms; {}",
        store.is_shared ? "shared by processes" : "for one process",
        store.has_sessions ? "leases can end with their process (session=on)" : "leases do not end with their process",
        store.pushes ? "wakes waiters" : "polls for waiters", store.commits_batches_as_one ? "as one" : "one by one",
        store.clock_resolution.count(),
        store.largest_value ? fmt::format("a value has at most {} bytes", *store.largest_value) : "values of any size");
}

/// The store of the command. Where none is named, that of the locks of the database's migrations.
Result<Store*> examined_store(Context& context, const std::string& database) {
    if (database.empty() || !context.settings.uses_default_store()) return context.store();
    const auto url = migrations::lock_store_of(database);
    if (!url) return std::unexpected(url.error());
    return context.use_store(*url);
}

/// What is found in the database that `--database` names, or in the store's own if something is guarded there.
Result<std::vector<Finding>> look_at_database(const Context& context, const std::string& database) {
    if (!database.empty()) {
        if (!sql::is_sql_url(database)) return fail(Errc::usage, "--database is the URL of a SQL database");
        return examine_database(context, database);
    }
    const auto url = context.settings.store_url();
    const bool guarded = url && sql::is_sql_url(*url) && is_guarded(context, *url);
    return guarded ? examine_database(context, *url) : std::vector<Finding>{};
}

Result<int> run_doctor(Context& context) {
    const std::string database = context.settings.text(opt::database);
    const auto store = examined_store(context, database);
    if (!store) return std::unexpected(store.error());
    auto findings = (*store)->examine(context.soon());
    const auto more = look_at_database(context, database);
    if (!more) return std::unexpected(more.error());
    findings.insert(findings.end(), more->begin(), more->end());
    const StoreInfo info = (*store)->info();
    Output& out = context.out;
    if (out.style().json) {
        out.document(json::examination(info, (*store)->properties(), findings).done());
    } else {
        out.line(fmt::format("{}: grade {}", printable(info.url), name_of(info.grade)));
        for (const std::string& reason : info.reasons) out.line("  " + printable(reason));
        out.line("  " + in_words((*store)->properties()));
        for (const Finding& finding : findings)
            out.line(fmt::format("{}  {}: {}",
                                 out.coloured(finding.ok ? "ok  " : "FAIL", finding.ok ? Colour::green : Colour::red),
                                 printable(finding.name), printable(finding.detail)));
    }
    const bool sound = std::ranges::all_of(findings, &Finding::ok);
    const bool is_enough = info.grade == Grade::a || !context.settings.on(strict);
    return sound && is_enough ? 0 : row_of(Errc::store_unsafe).exit_status;
}

constexpr Option print{
    {"print", Takes::nothing, "", "", From::environment}, '\0', "", "Print the schema instead, and touch nothing."};
constexpr Option with_fence{{"fence", Takes::nothing, "", "", From::command_line},
                            '\0',
                            "",
                            "Instead of the store, create the fence of --database: a table, and holdfast_assert."};
constexpr std::array init_options{print, with_fence, opt::database};

/// --database, or that of the locks.
Result<std::string> fenced_database(const Context& context) {
    if (context.settings.given(opt::database)) return context.settings.text(opt::database);
    auto url = context.settings.store_url();
    if (url && !sql::is_sql_url(*url))
        return fail(Errc::usage, "the locks are in no SQL database, so --database has to name the one to be fenced");
    return url;
}

void print_text(Context& context, std::string_view text) {
    context.out.line(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text);
}

Result<int> init_fence(Context& context) {
    const auto url = fenced_database(context);
    if (!url) return std::unexpected(url.error());
    if (context.settings.on(print)) {
        const std::string script = guards::fence::Fence::script(sql::dialect_of(*url));
        if (context.out.style().json)
            context.out.document(json::schema(script).done());
        else
            print_text(context, script);
        return 0;
    }
    const auto session = sql::open_session(*url, sql::IfAbsent::refuse, context.clock, context.soon());
    if (!session) return std::unexpected(session.error());
    const auto fence = guards::fence::Fence::of(**session, context.clock, context.soon());
    if (!fence) return std::unexpected(fence.error());
    if (auto created = (*fence)->create(context.soon()); !created) return std::unexpected(created.error());
    if (auto installed = (*fence)->install_assert(context.soon()); !installed)
        return std::unexpected(installed.error());
    if (context.out.style().json)
        context.out.document(json::fence_ready((*session)->place()).done());
    else if (!context.out.style().quiet)
        context.out.line(fmt::format("{} has a fence", printable((*session)->place())));
    return 0;
}

Result<int> print_schema(Context& context) {
    const auto url = context.settings.store_url();
    if (!url) return std::unexpected(url.error());
    const auto schema = schema_of(*url);
    if (!schema) return std::unexpected(schema.error());
    if (context.out.style().json) {
        context.out.document(json::schema(*schema).done());
    } else if (schema->empty()) {
        context.out.note("this store has no schema");
    } else {
        print_text(context, *schema);
    }
    return 0;
}

Result<int> run_init(Context& context) {
    if (context.settings.on(with_fence)) return init_fence(context);
    if (context.settings.on(print)) return print_schema(context);
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    if (const auto created = (*store)->apply({}, context.soon()); !created) return std::unexpected(created.error());
    const StoreInfo info = (*store)->info();
    if (context.out.style().json) {
        context.out.document(json::ready(info).done());
    } else if (!context.out.style().quiet) {
        context.out.line(fmt::format("{} is ready, store_id {}, grade {}", printable(info.url),
                                     info.store_id ? info.store_id->text() : "", name_of(info.grade)));
    }
    return 0;
}

Result<int> run_version(Context& context) {
    const auto schemes = known_schemes();
    if (!context.out.style().json) {
        context.out.line(fmt::format("holdfast {} (stores: {})", HOLDFAST_VERSION, fmt::join(schemes, ", ")));
        return 0;
    }
    context.out.document(json::version(HOLDFAST_VERSION, schemes).done());
    return 0;
}

}  // namespace

constinit const Command doctor_command{
    "doctor",
    "",
    "Is this store safe here? What does it promise?",
    "Looks at everything that the store's promise depends on and shows its grade. A: a grant survives a crash and a "
    "failover "
    "of the store. B: a crash of processes only. C: a grant can be lost in normal operation. Ends with status 78 if "
    "any check fails. Changes nothing.\n\nOf a SQL database that is fenced or migrated, the store's own or that of "
    "--database, it also says what is protected, what is not covered, and whether a migration stopped half way.",
    {},
    doctor_options,
    run_doctor};

constinit const Command init_command{"init",
                                     "",
                                     "Create the store now, or print its schema",
                                     "The first use creates a store, and the first change upgrades one that an older "
                                     "version made. So this is only for those who want it earlier, or who let nobody "
                                     "but an administrator create and alter tables.",
                                     {},
                                     init_options,
                                     run_init};

constinit const Command version_command{"version", "",         "Show the version and the stores it knows", "", {},
                                        {},        run_version};

}  // namespace holdfast::cli
