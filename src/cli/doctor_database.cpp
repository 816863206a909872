#include "cli/doctor_database.hpp"

#include "cli/migrate.hpp"
#include "guards/sql/fence.hpp"
#include "guards/sql/migrate/plan.hpp"
#include "guards/sql/protect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace holdfast::cli {
namespace {

namespace fence = guards::fence;
using Findings = std::vector<Finding>;

Finding found(std::string name, std::string detail) { return {std::move(name), true, std::move(detail)}; }
Finding wrong(std::string name, std::string detail) { return {std::move(name), false, std::move(detail)}; }

std::string count_of(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// What the fence cannot do here, whatever is sealed.
void add_limits(const sql::Session& session, Findings& findings) {
    const sql::ServerKind& server = session.server();
    if (session.dialect() == SqlDialect::sqlite)
        findings.push_back(found("not covered",
                                 "other programs that write to this file commit outside of our gate: "
                                 "one that does not ask holdfast_assert is not refused"));
    if (server.pooled)
        findings.push_back(wrong("pooler",
                                 "a pooler or proxy is in between: statements that commit by themselves "
                                 "cannot be fenced there, and are refused; connect to the server itself"));
    if (server.tidb)
        findings.push_back(found("not covered",
                                 "on TiDB statements that commit by themselves cannot be fenced, and "
                                 "are refused"));
}

void add_protected_tables(sql::Session& session, Deadline deadline, Findings& findings) {
    const auto tables = fence::protected_tables(session, deadline);
    if (!tables) return findings.push_back(wrong("protected", tables.error().message));
    for (const auto& table : *tables)
        findings.push_back(table.covered
                               ? found("protected", fmt::format("{} by {}", table.table, table.lock))
                               : wrong("protected", fmt::format("{} belongs to a protected table and is not protected; "
                                                                "run fence protect again",
                                                                table.table)));
    if (tables->empty()) return;
    findings.push_back(found("not covered",
                             "a session that sets holdfast.leases by itself, changes of a table's "
                             "definition, and clients that do not read PGOPTIONS"));
    const auto super = session.run(
        {.text = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user", .values = {}}, deadline);
    if (super && !super->rows.empty() && super->rows[0].at(0) == "t")
        findings.push_back(found("not covered",
                                 "this user is a superuser, who may disable triggers; let the "
                                 "application be another one"));
}

void add_fence(const Context& context, sql::Session& session, Findings& findings) {
    const auto ours = fence::Fence::of(session, context.clock, context.soon());
    if (!ours) return findings.push_back(wrong("fence", ours.error().message));
    const auto exists = (*ours)->exists(context.soon());
    if (!exists) return findings.push_back(wrong("fence", exists.error().message));
    if (!*exists)
        return findings.push_back(found("fence", "nobody has sealed this database, so no former holder is refused"));
    const auto rows = (*ours)->rows(context.soon());
    if (!rows) return findings.push_back(wrong("fence", rows.error().message));
    findings.push_back(found("fence", fmt::format("refuses former holders of {}", count_of(rows->size(), "lock"))));
    add_limits(session, findings);
    if (session.dialect() == SqlDialect::postgres) add_protected_tables(session, context.soon(), findings);
}

void add_migrations(const Context& context, const migrations::Ledger& ledger, Findings& findings) {
    const auto count = [&](migrations::Status status) {
        return static_cast<std::size_t>(std::ranges::count(ledger, status, &migrations::LedgerRow::status));
    };
    findings.push_back(found("migrations", fmt::format("{} applied", count(migrations::Status::applied))));
    for (const migrations::LedgerRow& row : ledger)
        if (row.is_unfinished())
            findings.push_back(
                wrong("migrations", fmt::format("{} {} stopped after {}; holdfast migrate up goes on, "
                                                "or says what to decide",
                                                row.version, row.name,
                                                count_of(static_cast<std::size_t>(row.statements_done), "statement"))));
    std::error_code ignored;
    if (!std::filesystem::is_directory(context.settings.text(opt::dir), ignored)) return;
    const auto folder = folder_of(context);
    if (!folder) return findings.push_back(wrong("migrations", folder.error().message));
    const auto plan = migrations::plan_up(*folder, ledger, {.to = {}, .out_of_order = migrations::OutOfOrder::refused});
    if (!plan) return findings.push_back(wrong("migrations", plan.error().message));
    for (const std::string& warning : plan->warnings) findings.push_back(found("migrations", warning));
    findings.push_back(found("migrations", fmt::format("{} pending", plan->steps.size())));
}

}  // namespace

std::vector<Finding> examine_database(const Context& context, const guards::migrate::Database& database) {
    const auto look = migrations::look_at(database, context.clock, context.soon());
    if (!look) return {wrong("database", look.error().message)};
    Findings findings;
    add_fence(context, *look->session, findings);
    if (!look->ledger.empty()) add_migrations(context, look->ledger, findings);
    return findings;
}

bool is_guarded(const Context& context, const guards::migrate::Database& database) {
    const auto look = migrations::look_at(database, context.clock, context.soon());
    if (!look) return false;
    const auto ours = fence::Fence::of(*look->session, context.clock, context.soon());
    return !look->ledger.empty() || (ours && (*ours)->exists(context.soon()).value_or(false));
}

}  // namespace holdfast::cli
