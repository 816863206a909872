#include "stores/postgres/statements.hpp"

#include "stores/common/poll_ticks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

/// The server's clock, read after the rows are locked: this is part of a statement that begins afterwards, whereas
/// an expression in the locking statement would be computed before the wait.
constexpr std::string_view clock_text =
    "clock AS MATERIALIZED (SELECT COALESCE($1::int8, "
    "floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now)";

/// Whether a ticket `q` lives. The second half is what `unsealed_ticket` does after the clock was put back.
constexpr std::string_view lives =
    "(q.expires_at > clock.now OR (q.written_at > clock.now + 100 AND q.expires_at > q.written_at))";

/// The parameters of `LockRows`.
constexpr std::string_view lock_arrays =
    "$1::bytea[], $2::int8[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int8[], $9::int8[], "
    "$10::int8[], $11::int8[], $12::int8[], $13::bytea[], $14::int8[]";
constexpr std::string_view lock_columns =
    "name, token, lock_id, holder, user_name, operation, reason, acquired_at, renewed_at, expires_at, seq, changed_at, "
    "data, session_key";
constexpr std::string_view lock_settings =
    "token = n.token, lock_id = n.lock_id, holder = n.holder, user_name = n.user_name, operation = n.operation, "
    "reason = n.reason, acquired_at = n.acquired_at, renewed_at = n.renewed_at, expires_at = n.expires_at, "
    "seq = n.seq, changed_at = n.changed_at, written_at = $15, data = n.data";
}  // namespace

Statements::Statements(const Settings& settings) {
    const std::string s = settings.quoted_schema();
    // A stronger synchronous_commit of the user's stays. A weaker one, which a role or a database can have as its
    // default, would lose acknowledged grants in a crash. A search_path of the role or the database can put another
    // user's function or operator before the server's own. Behind a pooler we must not change the session, so every
    // transaction begins with this.
    constexpr std::string_view entering =
        "SELECT format, store_id, {2}, pg_catalog.set_config('synchronous_commit', "
        "CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'remote_apply' "
        "THEN 'remote_apply' ELSE 'on' END, true), pg_catalog.set_config('lock_timeout', $3, true), "
        "pg_catalog.set_config('statement_timeout', $1, true), "
        "pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true), "
        "CASE WHEN pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.=) '{1}' THEN '' "
        "ELSE pg_catalog.set_config('search_path', '{1}', true) END "
        "FROM {0}.meta WHERE id OPERATOR(pg_catalog.=) 1";
    enter = fmt::format(entering, s, safe_search_path, "used");
    enter_old = fmt::format(entering, s, safe_search_path, "false");
    // Most rows exist, and a SELECT is cheaper than an INSERT that does nothing; it does not wait for a transaction
    // that is changing one.
    place = fmt::format(
        "INSERT INTO {0}.locks (name) SELECT w.name FROM unnest($1::bytea[]) AS w (name) "
        "WHERE (SELECT true FROM {0}.locks AS l WHERE l.name = w.name LIMIT 1) IS NULL ON CONFLICT (name) DO NOTHING",
        s);
    const std::string lock =
        fmt::format("SELECT name FROM {}.locks WHERE name = ANY ($1::bytea[]) ORDER BY name FOR ", s);
    lock_to_change = lock + "UPDATE";
    lock_to_look = lock + "SHARE";
    lock_to_change_if_free = lock + "UPDATE SKIP LOCKED";
    lock_to_look_if_free = lock + "SHARE SKIP LOCKED";
    const std::string in_line = fmt::format(
        "SELECT name FROM {0}.locks AS l WHERE name = $1::bytea AND "
        "(SELECT true FROM {0}.queue AS q WHERE q.name = $1::bytea AND q.lock_id = $2::uuid) FOR UPDATE OF l",
        s);
    lock_in_line = in_line;
    lock_in_line_if_free = in_line + " SKIP LOCKED";
    // Hardly any lock has a queue, so that is asked first, and the tickets are read only where there is one. Not with
    // EXISTS, here and for the history: a plan that was made for an empty table would hash the whole table every time.
    view = fmt::format(
        "WITH {1}, wanted AS MATERIALIZED (SELECT w.*, (SELECT true FROM {0}.queue AS q WHERE q.name = w.name LIMIT 1) "
        "AS queued FROM unnest($2::bytea[], $3::int8[], $6::int8[]) AS w (name, depth, contended)) "
        "SELECT 0::int8 AS kind, NULL::bytea AS name, now AS a, NULL::int8 AS b, NULL::uuid AS id, NULL::bytea AS data "
        "FROM clock "
        "UNION ALL "
        "SELECT 1, w.name, l.token, CASE WHEN l.data IS NULL THEN "
        "COALESCE((SELECT 1 FROM {0}.audit AS a WHERE a.name = w.name LIMIT 1), 0) "
        "WHEN l.session_key IS NULL THEN 0 WHEN w.contended = 0 THEN 2 "
        "WHEN pg_try_advisory_xact_lock(l.session_key) THEN 3 ELSE 2 END, l.lock_id, l.data "
        "FROM wanted AS w LEFT JOIN {0}.locks AS l ON l.name = w.name "
        "UNION ALL "
        "SELECT 2, w.name, (SELECT max(q.number) FROM {0}.queue AS q WHERE q.name = w.name), "
        "(SELECT count(*) FROM {0}.queue AS q WHERE q.name = w.name AND {2}), NULL, NULL FROM wanted AS w, clock "
        "WHERE w.queued "
        "UNION ALL "
        "SELECT 3, w.name, t.number, NULL, t.lock_id, t.data FROM wanted AS w, clock, LATERAL ("
        "(SELECT number, lock_id, data FROM {0}.queue AS q WHERE q.name = w.name AND {2} ORDER BY number LIMIT "
        "w.depth) "
        "UNION ALL "
        "(SELECT number, lock_id, data FROM {0}.queue AS q WHERE q.name = w.name AND w.depth > 0 AND NOT {2} "
        "ORDER BY number LIMIT 100)) AS t WHERE w.queued "
        "UNION ALL "
        "SELECT 3, q.name, q.number, NULL, q.lock_id, q.data FROM unnest($4::bytea[], $5::uuid[]) AS o (name, id) "
        "JOIN {0}.queue AS q ON q.name = o.name AND q.lock_id = o.id",
        s, clock_text, lives);

    put_locks = fmt::format(
        "UPDATE {}.locks AS l SET {}, session_key = CASE WHEN l.lock_id = n.lock_id "
        "THEN COALESCE(n.session_key, l.session_key) ELSE n.session_key END FROM unnest({}) AS n ({}) "
        "WHERE l.name = n.name",
        s, lock_settings, lock_arrays, lock_columns);
    const std::string all_done =
        fmt::format("SELECT CASE WHEN count(*) < cardinality($1::bytea[]) THEN {}.not_as_expected() END FROM done", s);
    put_new = fmt::format("INSERT INTO {}.locks ({}, written_at) SELECT n.*, $15 FROM unnest({}) AS n", s, lock_columns,
                          lock_arrays);
    put_known = fmt::format(
        "WITH done AS (UPDATE {}.locks AS l SET {}, session_key = CASE WHEN l.lock_id = n.lock_id THEN l.session_key "
        "END FROM unnest({}, $16::bytea[], $17::int8[], $18::uuid[]) AS n ({}, was, was_token, was_lock_id) "
        "WHERE l.name = n.name AND l.data = n.was AND l.token = n.was_token AND "
        "l.lock_id IS NOT DISTINCT FROM n.was_lock_id RETURNING 1) {}",
        s, lock_settings, lock_arrays, lock_columns, all_done);
    drop_known = fmt::format(
        "WITH done AS (DELETE FROM {}.queue AS q USING unnest($1::bytea[], $2::uuid[], $3::bytea[]) AS n (name, id, "
        "was) "
        "WHERE q.name = n.name AND q.lock_id = n.id AND q.data = n.was RETURNING 1) {}",
        s, all_done);
    const std::string is_first = fmt::format(
        "(w.below IS NULL OR w.queued IS NULL OR "
        "(SELECT true FROM {}.queue AS q WHERE q.name = w.name AND q.number < w.below LIMIT 1) IS NULL)",
        s);
    const std::string has_no_history = fmt::format(
        "(w.last_seq IS NULL OR "
        "(SELECT true FROM {}.audit AS a WHERE a.name = w.name AND a.seq > w.last_seq LIMIT 1) IS NULL)",
        s);
    const std::string is_our_store = fmt::format(
        "(SELECT m.store_id = $7::uuid AND m.format = $8::int8 AND m.used FROM {}.meta AS m WHERE m.id = 1)", s);
    confirm = fmt::format(
        "WITH {1}, wanted AS MATERIALIZED (SELECT w.*, (SELECT true FROM {0}.queue AS q WHERE q.name = w.name LIMIT 1) "
        "AS queued FROM unnest($4::bytea[], $5::int8[], $6::int8[]) AS w (name, below, last_seq)) "
        "SELECT w.name, CASE WHEN w.queued THEN (SELECT count(*) FROM {0}.queue AS q WHERE q.name = w.name AND {2}) "
        "ELSE 0 END, CASE WHEN clock.now BETWEEN $2::int8 AND $3::int8 AND {3} AND {4} AND {5} THEN 0 "
        "ELSE {0}.not_as_expected() END FROM wanted AS w, clock",
        s, clock_text, lives, is_first, has_no_history, is_our_store);
    put_tickets = fmt::format(
        "INSERT INTO {}.queue AS q (name, number, lock_id, holder, expires_at, data, written_at) "
        "SELECT n.*, $7::int8 FROM unnest($1::bytea[], $2::int8[], $3::uuid[], $4::text[], $5::int8[], $6::bytea[]) "
        "AS n "
        "ON CONFLICT (name, lock_id) DO UPDATE SET number = EXCLUDED.number, holder = EXCLUDED.holder, "
        "expires_at = EXCLUDED.expires_at, data = EXCLUDED.data, written_at = EXCLUDED.written_at",
        s);
    drop_tickets = fmt::format(
        "DELETE FROM {}.queue AS q USING unnest($1::bytea[], $2::uuid[]) AS n (name, id) "
        "WHERE q.name = n.name AND q.lock_id = n.id",
        s);
    clear_queues = fmt::format("DELETE FROM {}.queue AS q WHERE q.name = ANY ($1::bytea[])", s);
    traces = fmt::format(
        "SELECT COALESCE(l.token, 0), COALESCE(l.seq, 0), l.lock_id, l.data, "
        "COALESCE((SELECT max(a.seq) FROM {0}.audit AS a WHERE a.name = n.name), 0), "
        "COALESCE((SELECT max(a.token) FROM {0}.audit AS a WHERE a.name = n.name), 0), "
        "(SELECT a.data FROM {0}.audit AS a WHERE a.name = n.name ORDER BY a.seq DESC LIMIT 1), "
        "(SELECT a.data FROM {0}.audit AS a WHERE a.name = n.name ORDER BY a.seq LIMIT 1) "
        "FROM (SELECT $1::bytea AS name) AS n LEFT JOIN {0}.locks AS l ON l.name = n.name",
        s);
    add_events = fmt::format(
        "INSERT INTO {}.audit (name, seq, at, event, token, lock_id, holder, user_name, actor, reason, data) "
        "SELECT * FROM unnest($1::bytea[], $2::int8[], $3::int8[], $4::text[], $5::int8[], $6::uuid[], $7::text[], "
        "$8::text[], $9::text[], $10::text[], $11::bytea[])",
        s);
    cut_events = fmt::format("DELETE FROM {}.audit WHERE name = $1::bytea AND seq > $2::int8 AND seq <= $3::int8", s);
    mark_used = fmt::format("UPDATE {}.meta SET used = true WHERE id = 1 AND NOT used", s);
    wake = "SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS n (channel)";

    begin_change = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
    commit = "COMMIT";

    list = fmt::format(
        "WITH {1} SELECT l.name, l.token, l.lock_id, l.data, clock.now, "
        "(SELECT count(*) FROM {0}.queue AS q WHERE q.name = l.name AND {2}) FROM {0}.locks AS l, clock "
        "WHERE l.seq > 0 AND l.name >= $2::bytea AND l.name < $3::bytea "
        "AND ($4::int8 = 1 OR l.lock_id IS NOT NULL) AND ($5::int8 IS NULL OR l.changed_at >= $5) ORDER BY l.name "
        "LIMIT $6::int8",
        s, clock_text, lives);
    const auto histories = [&](std::string_view order) -> Histories {
        return {
            .of_one = fmt::format(
                "SELECT name, seq, data FROM {0}.audit WHERE name = $1::bytea AND seq > $2::int8 AND at >= $3::int8 "
                "ORDER BY seq {1} LIMIT $4::int8",
                s, order),
            .of_all = fmt::format("SELECT name, seq, data FROM {0}.audit WHERE at >= $1::int8 "
                                  "ORDER BY at {1}, name {1}, seq {1} LIMIT $2::int8",
                                  s, order)};
    };
    newest = histories("DESC");
    oldest = histories("ASC");
    watches = fmt::format(
        "WITH {1} SELECT l.seq, l.lock_id IS NULL OR l.expires_at <= clock.now, l.expires_at - clock.now, "
        "mine.number IS NOT NULL, (SELECT count(*) FROM (SELECT 1 FROM {0}.queue AS q WHERE q.name = w.name "
        "AND q.number < mine.number AND {2} LIMIT {3}) AS ahead), l.lock_id = w.lease "
        "FROM clock CROSS JOIN unnest($2::bytea[], $3::uuid[], $4::uuid[]) WITH ORDINALITY AS w (name, ticket, lease, "
        "at) "
        "LEFT JOIN {0}.locks AS l ON l.name = w.name "
        "LEFT JOIN LATERAL (SELECT q.number FROM {0}.queue AS q WHERE q.name = w.name AND q.lock_id = w.ticket "
        "AND {2}) AS mine ON true ORDER BY w.at",
        s, clock_text, lives, near_the_head + 1);
}

Statement begin_look() { return Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); }

namespace {

Statement entering(const RepeatedText& text, const base::CallBudget& budget, std::optional<milliseconds> longest_wait) {
    // The server gives up a little before we do, so that its answer still arrives.
    const milliseconds longest = std::max(budget.left() * 9 / 10, milliseconds{1});
    Statement statement(text);
    statement.bind(std::to_string(longest.count())).bind(std::to_string(longest_pause.count()));
    statement.bind(std::to_string(std::min(longest, longest_wait.value_or(longest)).count()));
    return statement;
}

}  // namespace

Statement enter(const Statements& statements, const base::CallBudget& budget,
                std::optional<milliseconds> longest_wait) {
    return entering(statements.enter, budget, longest_wait);
}

Statement enter_old(const Statements& statements, const base::CallBudget& budget) {
    return entering(statements.enter_old, budget, std::nullopt);
}

}  // namespace holdfast::stores::postgres
