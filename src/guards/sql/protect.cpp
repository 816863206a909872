#include "guards/sql/protect.hpp"

#include "guards/sql/postgres_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::guards::fence {
namespace {

constexpr auto trigger = "holdfast_protect";

/// The table $1 and everything that is attached to it, with names that are safe in a statement.
constexpr auto family =
    "WITH RECURSIVE family (id) AS (SELECT pg_catalog.to_regclass($1)::oid UNION "
    "SELECT i.inhrelid FROM family JOIN pg_catalog.pg_inherits AS i ON i.inhparent = family.id) "
    "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.relkind, EXISTS (SELECT 1 FROM pg_catalog.pg_trigger "
    "AS "
    "t WHERE t.tgrelid = c.oid AND t.tgname = 'holdfast_protect') FROM family JOIN pg_catalog.pg_class AS c ON c.oid = "
    "family.id JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace ORDER BY c.oid";

struct Member {
    std::string name;
    bool is_table;
    bool has_trigger;
};

Result<std::vector<Member>> family_of(sql::Session& session, std::string_view table, Deadline deadline) {
    const auto found = session.run({.text = family, .values = {std::string(table)}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look for the table"));
    std::vector<Member> members;
    for (const auto& row : found->rows)
        members.push_back({row.at(0).value_or(""), row.at(1) == "r" || row.at(1) == "p", row.at(2) == "t"});
    if (members.empty()) return fail(Errc::usage, fmt::format("there is no table {} in {}", table, session.place()));
    return members;
}

/// What the triggers call. The leases that a session carries are text that anybody may set.
constexpr auto function_body =
    "DECLARE\n"
    "    carried text := pg_catalog.current_setting('holdfast.leases', true);\n"
    "    lease jsonb;\n"
    "BEGIN\n"
    "    FOR lease IN SELECT l.value FROM jsonb_array_elements(coalesce(nullif(carried, ''), '[]')::jsonb) AS l\n"
    "                 WHERE l.value ->> 'name' = TG_ARGV[0] LOOP\n"
    "        BEGIN\n"
    "            PERFORM holdfast_schema.holdfast_assert(TG_ARGV[0], (lease ->> 'token')::bigint,\n"
    "                                                    (lease ->> 'lock_id')::uuid);\n"
    "            RETURN NULL;\n"
    "        EXCEPTION WHEN SQLSTATE 'HF080' THEN\n"
    "            -- Leases of the same name in several stores: any of them may be the one.\n"
    "        END;\n"
    "    END LOOP;\n"
    "    RAISE EXCEPTION 'E_FENCING_MISMATCH: % is written only by the holder of the lock \"%\"', TG_RELID::regclass,\n"
    "        TG_ARGV[0] USING ERRCODE = 'HF080', HINT = 'Work under the lock: holdfast run NAME -- COMMAND';\n"
    "END";

std::string function_of(const std::string& schema) {
    std::string body = function_body;
    constexpr std::string_view placeholder = "holdfast_schema";
    body.replace(body.find(placeholder), placeholder.size(), schema);
    return fmt::format(
        "CREATE OR REPLACE FUNCTION {}.holdfast_protect() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET "
        "search_path = pg_catalog, pg_temp AS {}",
        schema, dollar_quoted(body));
}

Result<void> run_in_transaction(sql::Session& session, const std::vector<std::string>& statements,
                                std::string_view doing, Deadline deadline) {
    std::vector<sql::Command> commands{{.text = "BEGIN", .values = {}},
                                       // A queued DDL statement makes readers wait, too.
                                       {.text = "SET LOCAL lock_timeout = 3000", .values = {}},
                                       {.text = "SET LOCAL standard_conforming_strings = on", .values = {}}};
    for (const std::string& text : statements) commands.push_back({.text = text, .values = {}});
    commands.push_back({.text = "COMMIT", .values = {}});
    const auto done = session.run_all(commands, deadline);
    if (done) return {};
    (void)session.run({.text = "ROLLBACK", .values = {}}, deadline);
    return std::unexpected(sql::error_of(done.error(), doing));
}

}  // namespace

Result<void> protect(sql::Session& session, Fence& fence, std::string_view table, const LockName& lock,
                     Deadline deadline) {
    const auto members = family_of(session, table, deadline);
    if (!members) return std::unexpected(members.error());
    if (const auto other = std::ranges::find(*members, false, &Member::is_table); other != members->end())
        return fail(Errc::usage, fmt::format("{} is no table of its own, so it cannot be protected", other->name));
    if (auto created = fence.create(deadline); !created) return created;
    if (auto installed = fence.install_assert(deadline); !installed) return installed;

    std::vector<std::string> statements{function_of(fence.quoted_schema())};
    for (const Member& member : *members) {
        statements.push_back(fmt::format("DROP TRIGGER IF EXISTS {} ON {}", trigger, member.name));
        statements.push_back(fmt::format(
            "CREATE TRIGGER {} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {} FOR EACH STATEMENT EXECUTE FUNCTION "
            "{}.holdfast_protect({})",
            trigger, member.name, fence.quoted_schema(), literal(lock.text())));  // An argument is no parameter.
        // Also in sessions that replay a replica's changes, where ordinary triggers do not fire.
        statements.push_back(fmt::format("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", member.name, trigger));
    }
    return run_in_transaction(session, statements, "protect the table", deadline);
}

Result<void> unprotect(sql::Session& session, std::string_view table, Deadline deadline) {
    const auto members = family_of(session, table, deadline);
    if (!members) return std::unexpected(members.error());
    std::vector<std::string> statements;
    for (const Member& member : *members)
        if (member.has_trigger) statements.push_back(fmt::format("DROP TRIGGER {} ON {}", trigger, member.name));
    if (statements.empty()) return fail(Errc::lock_not_held, fmt::format("{} is not protected", table));
    return run_in_transaction(session, statements, "take the protection away", deadline);
}

Result<std::vector<ProtectedTable>> protected_tables(sql::Session& session, Deadline deadline) {
    const auto found = session.run(
        {.text = "WITH RECURSIVE covered AS (SELECT t.tgrelid AS id, "
                 "pg_catalog.convert_from(pg_catalog.substring(t.tgargs, "
                 "1, pg_catalog.octet_length(t.tgargs) - 1), pg_catalog.getdatabaseencoding()) AS lock FROM "
                 "pg_catalog.pg_trigger AS t WHERE t.tgname = 'holdfast_protect' AND t.tgenabled = 'A'), "
                 "family AS (SELECT id, lock FROM covered UNION SELECT i.inhrelid, family.lock FROM family JOIN "
                 "pg_catalog.pg_inherits AS i ON i.inhparent = family.id) "
                 "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), family.lock, family.id IN (SELECT id FROM "
                 "covered) FROM family JOIN pg_catalog.pg_class AS c ON c.oid = family.id JOIN pg_catalog.pg_namespace "
                 "AS n "
                 "ON n.oid = c.relnamespace ORDER BY 1, 2",
         .values = {}},
        deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look for protected tables"));
    std::vector<ProtectedTable> tables;
    for (const auto& row : found->rows)
        tables.push_back({row.at(0).value_or(""), row.at(1).value_or(""), row.at(2) == "t"});
    return tables;
}

}  // namespace holdfast::guards::fence
