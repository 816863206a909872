// The fence in PostgreSQL. The check is FOR SHARE, which stands against a seal until the commit; FOR KEY SHARE would
// not. Sessions of a holder are known to the next one by an advisory lock with two numbers: one of the lock's name,
// which finds them, and one of the lease, which tells ours from those of earlier holders.

#include "guards/sql/fence.hpp"
#include "guards/sql/postgres_text.hpp"

#include <fmt/format.h>

namespace holdfast::guards::fence {
namespace {

using std::chrono::milliseconds;

constexpr auto not_ours = "42501";  ///< SQLSTATE: no right to end that session.

std::string quoted_name(std::string_view name) { return sql::quoted_name(name, SqlDialect::postgres); }

/// The two numbers of the advisory lock, of SQL expressions for the name, the token and the lock_id.
std::string keys(std::string_view schema, std::string_view name, std::string_view token, std::string_view lock_id) {
    return fmt::format(
        "pg_catalog.hashtext({} || pg_catalog.chr(10) || {}), pg_catalog.hashtext(({})::text || pg_catalog.chr(10) || "
        "({})::text)",
        literal(fmt::format("holdfast_fence {}", schema)), name, token, lock_id);
}

constexpr std::string_view one_creates =
    "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('holdfast_fence'))";

std::string table(std::string_view quoted_schema) {
    return fmt::format(
        "CREATE TABLE IF NOT EXISTS {}.holdfast_fence (\n"
        "    resource  text COLLATE \"C\" NOT NULL PRIMARY KEY,\n"
        "    store_id  uuid   NOT NULL,\n"
        "    token     bigint NOT NULL CHECK (token >= 0),\n"
        "    lock_id   uuid   NOT NULL\n"
        ")",
        quoted_schema);
}

/// It runs with the rights of its owner, so that a user of it needs none on the table; hence the fixed search_path.
std::string assert_function(std::string_view schema) {
    const std::string body = fmt::format(
        "BEGIN\n"
        "    -- By this the next holder finds a session that stays in its transaction.\n"
        "    PERFORM pg_catalog.pg_advisory_xact_lock_shared({1});\n"
        "    PERFORM 1 FROM {0}.holdfast_fence AS f\n"
        "        WHERE f.resource = $1 AND f.token = $2 AND f.lock_id = $3 FOR SHARE;\n"
        "    IF NOT FOUND THEN\n"
        "        RAISE EXCEPTION 'E_FENCING_MISMATCH: the database is not sealed for this token of \"%\"', $1\n"
        "            USING ERRCODE = 'HF080', HINT = 'A newer holder was here, or nobody sealed: holdfast fence "
        "status';\n"
        "    END IF;\n"
        "END",
        quoted_name(schema), keys(schema, "$1", "$2", "$3"));
    return fmt::format(
        "CREATE OR REPLACE FUNCTION {}.holdfast_assert(name text, token bigint, lock_id uuid) RETURNS void\n"
        "LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {}",
        quoted_name(schema), dollar_quoted(body));
}

Texts texts_of(const std::string& schema) {
    const std::string name = quoted_name(schema) + ".holdfast_fence";
    const std::string read = "SELECT resource, store_id, token, lock_id FROM " + name;
    return {
        .exists = fmt::format("SELECT 1 WHERE pg_catalog.to_regclass({}) IS NOT NULL", literal(name)),
        // CREATE TABLE IF NOT EXISTS fails when two run it at once.
        .create = {"BEGIN", std::string(one_creates), table(quoted_name(schema)), "COMMIT"},
        // A sealing process that stops in here must not stop the others for long.
        .begin_sealing = {"BEGIN ISOLATION LEVEL READ COMMITTED", "SET LOCAL lock_timeout = 300",
                          "SET LOCAL idle_in_transaction_session_timeout = 10000"},
        .end_sealing = {},
        .add_row = fmt::format("INSERT INTO {} (resource, store_id, token, lock_id) VALUES ($1, $2::uuid, 0, $4::uuid) "
                               "ON CONFLICT DO NOTHING",
                               name),
        .lock_row = read + " WHERE resource = $1 FOR UPDATE",
        .change_row =
            fmt::format("UPDATE {} SET store_id = $2::uuid, token = $3, lock_id = $4::uuid WHERE resource = $1", name),
        .check = fmt::format("SELECT 1 FROM {} WHERE resource = $1 AND store_id = $2::uuid AND token = $3 AND "
                             "lock_id = $4::uuid FOR SHARE",
                             name),
        .read_row = read + " WHERE resource = $1",
        .list = read + " ORDER BY resource",
    };
}

class PostgresFence final : public Fence {
public:
    PostgresFence(sql::Session& session, const Clock& clock, std::string schema)
        : Fence(session, clock, texts_of(schema)), schema_(std::move(schema)) {}

    [[nodiscard]] std::string quoted_schema() const override { return quoted_name(schema_); }

    [[nodiscard]] Result<void> enter_connection(const FenceClaim& claim, Deadline deadline) override {
        if (session().server().pooled)
            return fail(
                Errc::store_unsafe,
                fmt::format("{} is reached through a pooler, where a session is not ours alone: a statement that "
                            "commits by itself cannot be fenced; connect to the server directly",
                            session().place()));
        // Try without waiting: CREATE INDEX CONCURRENTLY waits for every transaction that waits.
        const auto entered =
            session().run({.text = fmt::format("SELECT pg_catalog.pg_try_advisory_lock_shared({})", key_of_claim()),
                           .values = values_of(claim)},
                          deadline);
        if (!entered) return std::unexpected(sql::error_of(entered.error(), "fence the connection"));
        if (entered->rows.at(0).at(0) != "t")
            return fail(Errc::fencing_mismatch, "another holder keeps this connection out");
        // Without FOR SHARE, which nothing would hold. A seal that comes after this read looks for the lock above.
        const auto newest = session().run({.text = without_row_lock(), .values = values_of(claim)}, deadline);
        if (newest && !newest->rows.empty()) return {};
        leave_connection();
        if (newest) return std::unexpected(mismatch(claim, deadline));
        return std::unexpected(sql::error_of(newest.error(), "check the fence"));
    }

    void leave_connection() override {
        if (session().is_usable())
            (void)session().run({.text = "SELECT pg_catalog.pg_advisory_unlock_all()", .values = {}},
                                Deadline::in(clock(), std::chrono::seconds{10}));
    }

protected:
    [[nodiscard]] std::vector<sql::Command> beginning(const FenceClaim& /*claim*/,
                                                      milliseconds lease_left) const override {
        return {{.text = "BEGIN ISOLATION LEVEL READ COMMITTED", .values = {}},
                {.text = "SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)",
                 .values = {std::to_string(lease_left.count())}}};
    }

    [[nodiscard]] std::vector<sql::Command> mark(const FenceClaim& claim) const override {
        return {{.text = fmt::format("SELECT pg_catalog.pg_advisory_xact_lock_shared({})", key_of_claim()),
                 .values = values_of(claim)}};
    }

    [[nodiscard]] std::vector<std::string> assert_statements() const override {
        // CREATE OR REPLACE fails when two run it at once.
        return {"BEGIN", std::string(one_creates), assert_function(schema_), "COMMIT"};
    }

    [[nodiscard]] Result<std::vector<EarlierSession>> end_earlier(const FenceClaim& claim, Deadline deadline) override {
        auto earlier = earlier_sessions(claim, deadline);
        if (!earlier) return earlier;
        for (const EarlierSession& session : *earlier) {
            const auto ended = this->session().run(
                {.text = "SELECT pg_catalog.pg_terminate_backend($1::int)", .values = {session.id}}, deadline);
            if (!ended && ended.error().code != not_ours)
                return std::unexpected(sql::error_of(ended.error(), "end the session of an earlier holder"));
        }
        return earlier;
    }

private:
    [[nodiscard]] std::string key_of_claim() const { return keys(schema_, "$1", "$3", "$4::uuid"); }

    [[nodiscard]] std::string without_row_lock() const {
        std::string check = texts().check;
        return check.substr(0, check.rfind(" FOR SHARE"));
    }

    [[nodiscard]] Result<std::vector<EarlierSession>> earlier_sessions(const FenceClaim& claim,
                                                                       Deadline deadline) const {
        const std::string text = fmt::format(
            "WITH mine (name, lease) AS (SELECT {})\n"
            "SELECT l.pid, pg_catalog.format('process %s of user %s%s (%s), which %s since %s', l.pid, a.usename, "
            "coalesce(' at ' || a.client_addr::text, ''), a.application_name, "
            "CASE a.state WHEN 'active' THEN 'runs a statement' ELSE 'is ' || coalesce(a.state, 'there') END, "
            "pg_catalog.to_char(a.state_change, 'HH24:MI:SS'))\n"
            "FROM mine, pg_catalog.pg_locks AS l LEFT JOIN pg_catalog.pg_stat_activity AS a USING (pid)\n"
            "WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.pid <> pg_catalog.pg_backend_pid() "
            "AND "
            "l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) AND "
            "l.classid::bigint = mine.name::bigint & 4294967295 AND l.objid::bigint <> mine.lease::bigint & 4294967295",
            key_of_claim());
        const auto found = session().run({.text = text, .values = values_of(claim)}, deadline);
        if (!found) return std::unexpected(sql::error_of(found.error(), "look for sessions of earlier holders"));
        std::vector<EarlierSession> earlier;
        for (const auto& row : found->rows)
            earlier.push_back({std::atoll(row.at(0).value_or("0").c_str()), row.at(1).value_or("")});
        return earlier;
    }

    std::string schema_;
};

}  // namespace

Result<std::unique_ptr<Fence>> postgres_fence(sql::Session& session, const Clock& clock, Deadline deadline) {
    // Where the table is, by the session's search_path; or where a new one goes.
    const auto found = session.run(
        {.text =
             "SELECT coalesce((SELECT n.nspname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n "
             "ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass('holdfast_fence')), "
             "pg_catalog.current_schema()::text)",
         .values = {}},
        deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look for holdfast_fence"));
    const SqlCell& schema = found->rows.at(0).at(0);
    if (!schema)
        return fail(Errc::config, fmt::format("no schema of the search_path of {} exists, so there is no place for "
                                              "holdfast_fence",
                                              session.place()));
    return std::make_unique<PostgresFence>(session, clock, *schema);
}

std::string postgres_script() {
    return fmt::format("-- Another schema than \"public\" is this text with the other name in its place.\n{};\n\n{};\n",
                       table("\"public\""), assert_function("public"));
}

}  // namespace holdfast::guards::fence
