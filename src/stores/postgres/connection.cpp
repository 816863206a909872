#include "stores/postgres/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <regex>
#include <set>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

std::string_view field(const PGresult* result, int code) {
    const char* value = PQresultErrorField(result, code);
    return value == nullptr ? "" : value;
}

/// False when time is over.
bool await_socket(int socket, short events, const CallBudget& budget) {
    pollfd ready{socket, events, 0};
    while (true) {
        const int found = poll(&ready, 1, static_cast<int>(budget.left().count()));
        if (found > 0) return true;
        if (budget.over() || (found < 0 && errno != EINTR)) return false;
    }
}

/// While connecting, a server that does not answer at all may use up only its share of the time, so that the
/// next one in the URL gets its turn. libpq itself goes on to it when this timeout ends the attempt.
std::string share_of_time(const Settings& settings, const CallBudget& budget) {
    const auto share = budget.left() / static_cast<int>(settings.hosts());
    return std::to_string(std::clamp(share, milliseconds{200}, milliseconds{5000}).count());
}

void set_user_timeout(int socket, const std::string& value) {
    const int time = std::atoi(value.c_str());
    // Fails on a UNIX socket, which does not need it.
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &time, sizeof time);
}

/// Why nobody was let in. By SQLSTATE, because the texts are in the server's language.
struct ConnectionFailure {
    std::string text{};
    std::set<std::string> sqlstates{};

    /// Of what libpq says while errors are verbose: `…FATAL:  28P01: …`, and lines that name a place in the server's
    /// sources, which are left out.
    static ConnectionFailure of(const std::string& said) {
        static const std::regex coded(":  ([0-9A-Z]{5}): ");
        static const std::regex location("[^\n]*\\.c:[0-9]+\n?");
        ConnectionFailure failure{.text = std::regex_replace(said, location, "")};
        for (std::sregex_iterator code(said.begin(), said.end(), coded), end; code != end; ++code)
            failure.sqlstates.insert((*code)[1]);
        return failure;
    }
    /// A wrong password, an unknown role, no entry in pg_hba.conf, no right to connect to the database. Somebody
    /// answered, and said no: asking again brings the same answer. A pooler has a code of its own for that.
    [[nodiscard]] bool is_refused_login() const {
        return std::ranges::any_of(sqlstates, [](const auto& code) { return code.starts_with("28"); }) ||
               sqlstates.contains("42501") ||
               (sqlstates.contains("08P01") && text.find("authentication failed") != std::string::npos);
    }
    [[nodiscard]] bool is_unknown_database() const { return sqlstates.contains("3D000"); }
};

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Settings& settings, const CallBudget& budget) {
    auto options = settings.options;
    const std::string user_timeout = options["tcp_user_timeout"];
    if (settings.hosts() > 1) options["tcp_user_timeout"] = share_of_time(settings, budget);
    std::vector<const char*> names;
    std::vector<const char*> values;
    for (const auto& [name, value] : options) {
        names.push_back(name.c_str());
        values.push_back(value.c_str());
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
    std::unique_ptr<Connection> connection(new Connection(PQconnectStartParams(names.data(), values.data(), 0)));
    if (!connection->connection_) return fail(Errc::store_unavailable, "out of memory");
    if (auto connected = connection->connect(settings, budget); !connected) return std::unexpected(connected.error());
    set_user_timeout(connection->socket(), user_timeout);
    if (auto greeted = connection->greet(settings, budget); !greeted) return std::unexpected(greeted.error());
    return connection;
}

Result<void> Connection::connect(const Settings& settings, const CallBudget& budget) {
    PGconn* const connection = connection_.get();
    PQsetNoticeReceiver(connection, heard, this);
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (PQstatus(connection) != CONNECTION_BAD && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        if (!await_socket(PQsocket(connection), status == PGRES_POLLING_READING ? POLLIN : POLLOUT, budget))
            return fail(Errc::store_unavailable, fmt::format("{} did not answer in time", settings.url));
        status = PQconnectPoll(connection);
    }
    if (PQstatus(connection) != CONNECTION_OK) {
        const auto failure = ConnectionFailure::of(PQerrorMessage(connection));
        const std::string message = scrubbed(failure.text.c_str());
        if (PQconnectionNeedsPassword(connection) != 0 || failure.is_refused_login())
            return fail(Errc::denied, fmt::format("cannot log in to {}: {}", settings.url, message));
        if (failure.is_unknown_database())
            return fail(Errc::config, fmt::format("cannot use {}: {}; create the database, or name another one",
                                                  settings.url, message));
        return fail(Errc::store_unavailable, fmt::format("cannot connect to {}: {}", settings.url, message));
    }
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
    if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1)
        return fail(Errc::store_unavailable, "libpq cannot work without waiting");
    return {};
}

Result<void> Connection::greet(const Settings& settings, const CallBudget& budget) {
    const Trip trip = run(Statement("SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_backend_pid()::int8, "
                                    "pg_catalog.current_setting('server_encoding')"),
                          budget);
    if (trip.fault) return std::unexpected(error_of(*trip.fault, "use " + settings.url));
    const Rows& facts = trip.answers.front();
    if (facts.flag(0, 0))
        return fail(Errc::store_unavailable,
                    fmt::format("{} is a standby: it cannot grant a lock, and what it shows is old", settings.url));
    // A pooler answers the handshake itself, and makes the number up.
    pooled_ = facts.number(0, 1) != PQbackendPID(connection_.get());
    const std::string_view encoding = facts.text(0, 2);
    if (encoding != "UTF8" && encoding != "SQL_ASCII")
        return fail(Errc::store_unsafe, fmt::format("the database of {} has the encoding {}, which cannot write every "
                                                    "name; use one with UTF8",
                                                    settings.url, encoding));
    return pooled_ ? Result<void>{} : plan_once(budget);
}

Result<void> Connection::plan_once(const CallBudget& budget) {
    // A plan that is kept is made for tables as they are then, which is often empty, and would read them from end to
    // end when they have grown. Everything that is repeated finds its rows by a key, so only such plans are allowed.
    const Trip trip =
        run(Statement(fmt::format(
                "SELECT pg_catalog.set_config(name, value, false) FROM (VALUES "
                "('search_path', '{}'), ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), "
                "('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), "
                "('enable_material', 'off'), ('jit', 'off')) AS s (name, value)",
                safe_search_path)),
            budget);
    if (trip.fault) return std::unexpected(error_of(*trip.fault, "set up the session"));
    return {};
}

Trip Connection::run(std::span<const Statement> statements, const CallBudget& budget) {
    Trip trip;
    if (!drain(budget)) {
        trip.fault = broken(0, budget);
        return trip;
    }
    half_committed_ = false;
    std::vector<Awaited> awaited;
    bool sent = true;
    for (std::size_t i = 0; i < statements.size(); ++i) sent = sent && queue(statements[i], i, awaited);
    if (!sent || PQpipelineSync(connection_.get()) != 1 || !flush(budget)) {
        trip.fault = broken(0, budget);
        return trip;
    }
    for (const Awaited& answer : awaited)
        if (!take_answer(answer, trip, budget)) return trip;
    unread_ = 1;
    // All statements are answered; what is left to read is that the trip is over.
    if (!drain(budget)) usable_ = false;
    trip.half_committed = half_committed_;
    return trip;
}

bool Connection::queue(const Statement& statement, std::size_t at, std::vector<Awaited>& awaited) {
    // Somebody who shares a few sessions among many may run each transaction in another one.
    if (pooled_ || statement.name().empty()) {
        awaited.push_back({at});
        return statement.send(*connection_);
    }
    const auto is_this = [&](const Awaited& other) { return other.kept && *other.kept == statement.name(); };
    if (!prepared_.contains(statement.name()) && std::ranges::none_of(awaited, is_this)) {
        awaited.push_back({at, &statement.name()});
        if (!statement.prepare(*connection_)) return false;
    }
    awaited.push_back({at});
    return statement.send_prepared(*connection_);
}

bool Connection::take_answer(const Awaited& awaited, Trip& trip, const CallBudget& budget) {
    const auto lost = [&] {
        if (!trip.fault) trip.fault = broken(awaited.at, budget);
        return false;
    };
    if (!await_answer(budget)) return lost();
    Rows rows(PQgetResult(connection_.get()));
    const PGresult* result = rows.get();
    if (PQresultStatus(result) == PGRES_FATAL_ERROR && !trip.fault) {
        trip.fault = Fault{awaited.at, std::string(field(result, PG_DIAG_SQLSTATE)),
                           scrubbed(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)),
                           field(result, PG_DIAG_SEVERITY_NONLOCALIZED) != "ERROR",
                           std::string(field(result, PG_DIAG_CONSTRAINT_NAME))};
        if (trip.fault->silent()) trip.fault = broken(awaited.at, budget);
        if (trip.fault->fatal) usable_ = false;
        if (trip.fault->is_strangers()) pooled_ = true;
        if (!usable_) return false;
    }
    if (!trip.fault && awaited.kept) prepared_.insert(*awaited.kept);
    if (!trip.fault && !awaited.kept) trip.answers.push_back(std::move(rows));
    // A null pointer ends each answer.
    if (!await_answer(budget)) return lost();
    [[maybe_unused]] const Rows end(PQgetResult(connection_.get()));
    return true;
}

void Connection::send_only(const Statement& statement) {
    if (!usable_) return;
    // Nobody waits for room in the socket here either: the rest of it goes out with the next trip.
    usable_ = statement.send(*connection_) && PQpipelineSync(connection_.get()) == 1 && PQflush(connection_.get()) >= 0;
    ++unread_;
}

bool Connection::drain(const CallBudget& budget) {
    while (usable_ && unread_ > 0) {
        if (!flush(budget) || !await_answer(budget)) return false;
        const Rows rows(PQgetResult(connection_.get()));
        if (rows.get() == nullptr) continue;
        if (PQresultStatus(rows.get()) == PGRES_PIPELINE_SYNC) --unread_;
        if (PQresultStatus(rows.get()) == PGRES_FATAL_ERROR && PQstatus(connection_.get()) == CONNECTION_BAD)
            usable_ = false;
    }
    return usable_;
}

bool Connection::is_alive() {
    pollfd ready{socket(), POLLIN, 0};
    // A server that ends a session first says so, and then closes the connection.
    while (usable_ && poll(&ready, 1, 0) > 0)
        usable_ = PQconsumeInput(connection_.get()) == 1 && PQstatus(connection_.get()) == CONNECTION_OK;
    return usable_;
}

std::vector<std::string> Connection::notifications() {
    std::vector<std::string> found;
    if (!is_alive()) return found;
    while (PGnotify* const one = PQnotifies(connection_.get())) {
        found.emplace_back(one->relname);
        PQfreemem(one);
    }
    return found;
}

bool Connection::flush(const CallBudget& budget) {
    while (true) {
        const int left = PQflush(connection_.get());
        if (left == 0) return true;
        // A server that cannot get rid of its answers takes no more statements, so both directions count.
        if (left < 0 || !await_socket(socket(), POLLIN | POLLOUT, budget) || PQconsumeInput(connection_.get()) != 1)
            return usable_ = false;
    }
}

bool Connection::await_answer(const CallBudget& budget) {
    while (PQisBusy(connection_.get()) == 1) {
        if (!await_socket(socket(), POLLIN, budget)) return usable_ = false;
        // What arrived before the connection broke still counts, so the results are asked, not this call.
        if (PQconsumeInput(connection_.get()) != 1 && PQisBusy(connection_.get()) == 1) return usable_ = false;
    }
    return true;
}

Fault Connection::broken(std::size_t at, const CallBudget& budget) {
    usable_ = false;
    const std::string said = scrubbed(PQerrorMessage(connection_.get()));
    return {at, "",
            said.empty() ? (budget.over() ? "the server did not answer in time" : "the connection broke") : said};
}

std::string Connection::scrubbed(const char* text) const {
    std::string clean = text == nullptr ? "" : text;
    while (clean.ends_with('\n')) clean.pop_back();
    std::ranges::replace(clean, '\n', ' ');
    const char* known = PQpass(connection_.get());
    const std::string password = known == nullptr ? "" : known;
    constexpr std::string_view hidden = "***";
    for (std::size_t at = 0; !password.empty() && (at = clean.find(password, at)) != std::string::npos;
         at += hidden.size())
        clean.replace(at, password.size(), hidden);
    return clean;
}

void Connection::heard(void* self, const PGresult* notice) {
    // A wait for a synchronous standby that was cancelled: committed here, perhaps nowhere else. Warnings that
    // somebody's own trigger raises have the same code.
    const std::string_view code = field(notice, PG_DIAG_SQLSTATE);
    const bool warning = field(notice, PG_DIAG_SEVERITY_NONLOCALIZED) == "WARNING";
    if (warning && (code == "01000" || code == "57P01") && field(notice, PG_DIAG_SOURCE_FUNCTION) != "exec_stmt_raise")
        static_cast<Connection*>(self)->half_committed_ = true;
}

Statement notice_dead_peers() {
    return Statement(
        "SELECT set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false), "
        "set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '10000', false)");
}

/// What is the matter with the server, in words that need no other language, if the code says it.
static std::string_view condition_of(std::string_view sqlstate) {
    if (sqlstate == "53100") return "the server's disk is full: ";
    if (sqlstate == "53200") return "the server is out of memory: ";
    if (sqlstate == "53300") return "the server has too many connections: ";
    if (sqlstate == "25006") return "the server is read-only: ";
    if (sqlstate == "57P03") return "the server is starting or ending: ";
    if (sqlstate == "58030") return "the server cannot use its disk: ";
    return "";
}

Error error_of(const Fault& fault, std::string_view doing) {
    const std::string_view code = fault.sqlstate;
    const std::string_view kind = code.substr(0, 2);
    const std::string detail = fault.silent() ? fault.message : fmt::format("{} ({})", fault.message, code);
    if (code == "42501") return {Errc::denied, fmt::format("cannot {}: {}", doing, detail)};
    // Rows that break the schema's own rules, a table that is missing or has other columns, damaged pages.
    if (kind == "23" || kind == "42" || kind == "3F" || kind == "XX")
        return {Errc::record_corrupt,
                fmt::format("cannot {}: {}; the store stays blocked until it is repaired", doing, detail)};
    if (code == "55P03" || code == "57014")
        return {Errc::store_unavailable,
                fmt::format("cannot {} in time: somebody else holds its row; nothing was changed", doing)};
    return {Errc::store_unavailable,
            fmt::format("cannot {}: {}{}; nothing was changed", doing, condition_of(code), detail)};
}

}  // namespace holdfast::stores::postgres
