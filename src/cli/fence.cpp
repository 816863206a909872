// Fences of SQL databases: which tables refuse everybody without the current token, and which store's tokens count.
#include "guards/sql/fence.hpp"

#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/prompt.hpp"
#include "guards/sql/protect.hpp"
#include "json/fence.hpp"
#include "sql/session.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::cli {
namespace {

namespace fence = guards::fence;

constexpr Option table{
    {"table", Takes::one, "", "", From::environment}, '\0', "T", "The table, with its schema if it needs one."};
constexpr Option lock{
    {"lock", Takes::one, "", "", From::environment}, '\0', "NAME", "The lock whose holder may write."};

/// A connection to the database of the command, and its fence.
struct Place {
    std::unique_ptr<sql::Session> session;
    std::unique_ptr<fence::Fence> fence;
};

Result<Place> connect(const Context& context, const std::string& url) {
    Place place;
    auto session = sql::open_session(url, sql::IfAbsent::refuse, context.clock, context.soon());
    if (!session) return std::unexpected(session.error());
    place.session = std::move(*session);
    auto found = fence::Fence::of(*place.session, context.clock, context.soon());
    if (!found) return std::unexpected(found.error());
    place.fence = std::move(*found);
    return place;
}

/// --database, or the database that the locks are in.
Result<Place> connect(const Context& context) {
    if (context.settings.given(opt::database)) return connect(context, context.settings.text(opt::database));
    const auto url = context.settings.store_url();
    if (!url) return std::unexpected(url.error());
    if (!sql::is_sql_url(*url))
        return fail(Errc::usage, "the locks are in no SQL database, so --database has to name the one with the fence");
    return connect(context, *url);
}

/// Tables are protected where the locks are: only there does `run` know that it has to seal.
Result<Place> connect_to_postgres(const Context& context) {
    const auto url = context.settings.store_url();
    if (!url) return std::unexpected(url.error());
    if (!url->starts_with("postgres:") && !url->starts_with("postgresql:"))
        return fail(Errc::usage,
                    "tables are protected in PostgreSQL with the locks in the same database; name it with --store, or "
                    "let your transactions call holdfast_assert");
    return connect(context, *url);
}

Result<std::string> needed(const Context& context, const Option& option) {
    std::string text = context.settings.text(option);
    if (text.empty()) return fail(Errc::usage, fmt::format("--{} is missing", option.name));
    return text;
}

Result<LockName> lock_of(const Context& context) {
    const auto text = needed(context, lock);
    if (!text) return std::unexpected(text.error());
    return LockName::parse(*text);
}

/// Makes the store if need be, so that it has one.
Result<StoreId> store_id_of(Context& context) {
    const auto store = context.store();
    if (!store) return std::unexpected(store.error());
    if (const auto ready = (*store)->apply({}, context.soon()); !ready) return std::unexpected(ready.error());
    const auto store_id = (*store)->store_id();
    if (!store_id) return fail(Errc::config, "this store has no store_id");
    return *store_id;
}

Result<int> run_protect(Context& context) {
    const auto name = lock_of(context);
    if (!name) return std::unexpected(name.error());
    const auto which = needed(context, table);
    if (!which) return std::unexpected(which.error());
    auto place = connect_to_postgres(context);
    if (!place) return std::unexpected(place.error());
    const auto store_id = store_id_of(context);
    if (!store_id) return std::unexpected(store_id.error());
    if (auto ready = place->fence->expect_holders_of(*name, *store_id, context.soon()); !ready)
        return std::unexpected(ready.error());
    const auto done = fence::protect(*place->session, *place->fence, *which, *name, context.soon());
    if (!done) return std::unexpected(done.error());
    if (context.out.style().json)
        context.out.document(json::protected_table(*which, name->text()).done());
    else if (!context.out.style().quiet)
        context.out.line(
            fmt::format("{} is written only by the holder of {} now", printable(*which), printable(name->text())));
    return 0;
}

Result<int> run_unprotect(Context& context) {
    const auto which = needed(context, table);
    if (!which) return std::unexpected(which.error());
    const auto place = connect_to_postgres(context);
    if (!place) return std::unexpected(place.error());
    const auto done = fence::unprotect(*place->session, *which, context.soon());
    if (!done) return std::unexpected(done.error());
    if (context.out.style().json)
        context.out.document(json::protected_table(*which, "").done());
    else if (!context.out.style().quiet)
        context.out.line(fmt::format("everybody can write to {} again", printable(*which)));
    return 0;
}

Result<int> run_status(Context& context) {
    const auto place = connect(context);
    if (!place) return std::unexpected(place.error());
    const auto exists = place->fence->exists(context.soon());
    if (!exists) return std::unexpected(exists.error());
    std::vector<fence::SealedRow> rows;
    std::vector<fence::ProtectedTable> tables;
    if (*exists) {
        auto sealed = place->fence->rows(context.soon());
        if (!sealed) return std::unexpected(sealed.error());
        rows = std::move(*sealed);
    }
    if (place->session->dialect() == SqlDialect::postgres) {
        auto found = fence::protected_tables(*place->session, context.soon());
        if (!found) return std::unexpected(found.error());
        tables = std::move(*found);
    }
    if (context.out.style().json) {
        std::vector<json::Value> seals;
        for (const auto& row : rows) seals.push_back(json::seal(row.name, row.store_id, row.token, row.lock_id).done());
        std::vector<json::Value> covered;
        for (const auto& one : tables)
            covered.push_back(json::protected_table(one.table, one.lock, one.covered).done());
        context.out.document(json::fence_status(seals, covered).done());
        return 0;
    }
    if (rows.empty()) context.out.note("no holder has sealed this database yet");
    std::vector<Row> lines;
    for (const auto& row : rows)
        lines.push_back(
            {{printable(row.name), std::to_string(row.token.value), row.lock_id.text(), row.store_id.text()}});
    if (!lines.empty()) context.out.table({"LOCK", "TOKEN", "LOCK_ID", "STORE_ID"}, lines);
    for (const auto& one : tables)
        context.out.line(one.covered ? fmt::format("{} is written only by the holder of {}", printable(one.table),
                                                   printable(one.lock))
                                     : fmt::format("{} belongs to a protected table and is not protected: run fence "
                                                   "protect again",
                                                   printable(one.table)));
    if (!tables.empty())
        context.out.note(
            "not stopped: a session that sets holdfast.leases by itself, whoever may disable triggers, and "
            "changes of the table's definition");
    return 0;
}

Result<int> run_bind(Context& context) {
    const auto name = lock_of(context);
    if (!name) return std::unexpected(name.error());
    const auto store_id = store_id_of(context);
    if (!store_id) return std::unexpected(store_id.error());
    auto place = connect(context);
    if (!place) return std::unexpected(place.error());
    const auto agreed =
        confirm(context, fmt::format("From now on {} counts the tokens of {} for {}, whatever sealed it before. Go on?",
                                     printable(place->session->place()), printable(context.info()->url),
                                     printable(name->text())));
    if (!agreed) return std::unexpected(agreed.error());
    if (!*agreed) return fail(Errc::denied, "nothing was changed");
    if (auto bound = place->fence->bind(*name, *store_id, context.soon()); !bound)
        return std::unexpected(bound.error());
    if (context.out.style().json)
        context.out.document(json::seal(name->text(), *store_id, FencingToken{}, LockId{}).done());
    else if (!context.out.style().quiet)
        context.out.line(
            fmt::format("the fence of {} belongs to store {} now", printable(name->text()), store_id->text()));
    return 0;
}

constexpr std::array protect_options{table, lock};
constexpr std::array unprotect_options{table};
constexpr std::array status_options{opt::database};
constexpr std::array bind_options{lock, opt::database, opt::yes};

}  // namespace

constinit const Command fence_protect_command{
    "fence protect",
    "",
    "Let only the holder of a lock write to a table",
    "PostgreSQL with the locks in the same database. Puts triggers on the table and its partitions: from then on "
    "INSERT, "
    "UPDATE, DELETE and TRUNCATE are refused by the database unless the session carries the newest lease of the lock. "
    "holdfast run gives it to every PostgreSQL client that it starts, through PGOPTIONS.\n\n"
    "This stops mistakes and not malice: token and lock_id are public, and an owner can drop a trigger. It does not "
    "cover changes of the table's definition, nor partitions that are attached later until this is run again.\n\n"
    "Example: holdfast fence protect --table accounts --lock accounts/write",
    {},
    protect_options,
    run_protect};

constinit const Command fence_unprotect_command{"fence unprotect",
                                                "",
                                                "Let everybody write to a table again",
                                                "Removes what fence protect has put on the table.",
                                                {},
                                                unprotect_options,
                                                run_unprotect};

constinit const Command fence_status_command{"fence status",
                                             "",
                                             "Show who sealed a database, and which tables are protected",
                                             "A line for each lock whose holders seal this database. Writes nothing.",
                                             {},
                                             status_options,
                                             run_status};

constinit const Command fence_bind_command{
    "fence bind",
    "",
    "Let the tokens of another store count for a database",
    "A database that was sealed by holders of one store refuses those of every other, because tokens of two stores "
    "cannot be compared. When the locks have moved for good, this lets the tokens of --store count. Make sure first "
    "that "
    "nobody works under the former store.",
    {},
    bind_options,
    run_bind};

}  // namespace holdfast::cli
