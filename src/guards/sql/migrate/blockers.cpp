#include "guards/sql/migrate/blockers.hpp"

#include "guards/sql/migrate/tokens.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace holdfast::guards::migrate {
namespace {

constexpr auto in_postgres = R"(
SELECT DISTINCT pg_catalog.format('process %s of user %s%s (%s), %s since %s: %s', a.pid, a.usename,
    coalesce(' at ' || a.client_addr::text, ''), a.application_name, a.state,
    pg_catalog.to_char(a.xact_start, 'HH24:MI:SS'), pg_catalog.left(a.query, 80))
FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity AS a USING (pid)
WHERE l.granted AND l.locktype = 'relation' AND a.pid <> pg_catalog.pg_backend_pid() AND l.relation IN
    (SELECT pg_catalog.to_regclass(name)::oid
     FROM pg_catalog.unnest(pg_catalog.string_to_array($1, pg_catalog.chr(10))) AS name WHERE name <> '')
LIMIT 5)";
constexpr auto in_mysql = R"(
SELECT CONCAT('connection ', p.id, ' of user ', p.user, ' at ', p.host, ', in a transaction since ', t.trx_started,
    ', ', p.command)
FROM information_schema.innodb_trx AS t JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
WHERE p.id <> CONNECTION_ID() LIMIT 5)";

/// What could be the name of a table in it, one on each line. Of `schema.table.column` the pairs: a name with three
/// parts is an error to PostgreSQL.
std::string names_in(std::string_view statement) {
    const Tokens tokens(statement, SqlDialect::postgres);
    const auto is_name = [&](std::size_t at) {
        return at < tokens.size() && (tokens[at].kind == Token::Kind::word || tokens[at].kind == Token::Kind::name) &&
               tokens[at].text.find('\n') == std::string_view::npos;
    };
    std::string names;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
        if (!is_name(at)) continue;
        const bool goes_on = at + 1 < tokens.size() && tokens[at + 1].is('.');
        if (goes_on && is_name(at + 2))
            names += fmt::format("{}.{}\n", tokens[at].text, tokens[at + 2].text);
        else if (!goes_on && (at == 0 || !tokens[at - 1].is('.')))
            names += fmt::format("{}\n", tokens[at].text);
    }
    return names;
}

}  // namespace

std::string blockers_of(sql::Session& session, std::string_view statement, Deadline deadline) {
    if (session.dialect() == SqlDialect::sqlite) return "another process that writes to the file";
    const bool postgres = session.dialect() == SqlDialect::postgres;
    const auto found = postgres ? session.run({.text = in_postgres, .values = {names_in(statement)}}, deadline)
                                : session.run({.text = in_mysql, .values = {}}, deadline);
    std::vector<std::string> words;
    if (found)
        for (const auto& row : found->rows) words.push_back(printable(row.at(0).value_or("")));
    if (words.empty()) return "a session that the server does not name";
    return fmt::to_string(fmt::join(words, "; "));
}

}  // namespace holdfast::guards::migrate
