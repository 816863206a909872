#include "sql/postgres/connection.hpp"

#include "base/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <regex>
#include <set>

namespace holdfast::sql::postgres {
namespace {

using std::chrono::milliseconds;

std::string_view field(const PGresult* result, int code) {
    const char* value = PQresultErrorField(result, code);
    return value == nullptr ? "" : value;
}

std::string detail_of(const PGresult* result) {
    const std::string_view detail = field(result, PG_DIAG_MESSAGE_DETAIL);
    const std::string_view hint = field(result, PG_DIAG_MESSAGE_HINT);
    return fmt::format("{}{}{}", detail, detail.empty() || hint.empty() ? "" : " ", hint);
}

/// False when time is over.
bool await_socket(int socket, short events, const base::CallBudget& budget) {
    pollfd ready{socket, events, 0};
    while (true) {
        const int found = poll(&ready, 1, static_cast<int>(budget.left().count()));
        if (found > 0) return true;
        if (budget.over() || (found < 0 && errno != EINTR)) return false;
    }
}

/// While connecting, a server that does not answer at all may use up only its share of the time, so that the
/// next one in the URL gets its turn. libpq itself goes on to it when this timeout ends the attempt.
std::string share_of_time(const Address& address, const base::CallBudget& budget) {
    const auto share = budget.left() / static_cast<int>(address.hosts());
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

bool is_copy(const PGresult* result) {
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Address& address, const base::CallBudget& budget) {
    auto options = address.options;
    const std::string user_timeout = options["tcp_user_timeout"];
    if (address.hosts() > 1) options["tcp_user_timeout"] = share_of_time(address, budget);
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
    if (auto connected = connection->connect(address, budget); !connected) return std::unexpected(connected.error());
    set_user_timeout(connection->socket(), user_timeout);
    if (auto read = connection->read_facts(address, budget); !read) return std::unexpected(read.error());
    return connection;
}

Result<void> Connection::connect(const Address& address, const base::CallBudget& budget) {
    PGconn* const connection = connection_.get();
    PQsetNoticeReceiver(connection, heard, this);
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (PQstatus(connection) != CONNECTION_BAD && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        if (!await_socket(PQsocket(connection), status == PGRES_POLLING_READING ? POLLIN : POLLOUT, budget))
            return fail(Errc::store_unavailable, fmt::format("{} did not answer in time", address.url));
        status = PQconnectPoll(connection);
    }
    if (PQstatus(connection) != CONNECTION_OK) {
        const auto failure = ConnectionFailure::of(PQerrorMessage(connection));
        const std::string message = scrubbed(failure.text.c_str());
        if (PQconnectionNeedsPassword(connection) != 0 || failure.is_refused_login())
            return fail(Errc::denied, fmt::format("cannot log in to {}: {}", address.url, message));
        if (failure.is_unknown_database())
            return fail(Errc::config, fmt::format("cannot use {}: {}; create the database, or name another one",
                                                  address.url, message));
        return fail(Errc::store_unavailable, fmt::format("cannot connect to {}: {}", address.url, message));
    }
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
    if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1)
        return fail(Errc::store_unavailable, "libpq cannot work without waiting");
    return {};
}

Result<void> Connection::read_facts(const Address& address, const base::CallBudget& budget) {
    const Trip trip = run(Statement("SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_backend_pid()::int8, "
                                    "pg_catalog.current_setting('server_encoding')"),
                          budget);
    if (const auto& fault = trip.fault)
        return fail(fault->error_class() == ErrorClass::denied ? Errc::denied : Errc::store_unavailable,
                    fmt::format("cannot use {}: {}{}", address.url, condition_of(*fault), fault->message));
    const Rows& facts = trip.answers.front();
    standby_ = facts.flag(0, 0);
    // A pooler answers the handshake itself, and makes the number up.
    pooled_ = facts.number(0, 1) != PQbackendPID(connection_.get());
    encoding_ = facts.text(0, 2);
    return {};
}

Trip Connection::run(std::span<const Statement> statements, const base::CallBudget& budget) {
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
    // A pooler shares a few sessions among many clients, and may run each transaction in another one.
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

bool Connection::take_answer(const Awaited& awaited, Trip& trip, const base::CallBudget& budget) {
    const auto lost = [&] {
        if (!trip.fault) trip.fault = broken(awaited.at, budget);
        return false;
    };
    if (!await_answer(budget)) return lost();
    Rows rows(PQgetResult(connection_.get()));
    const PGresult* result = rows.get();
    if (PQresultStatus(result) == PGRES_FATAL_ERROR && !trip.fault) {
        trip.fault = fault_of(result, awaited.at, budget);
        if (trip.fault->session_was_replaced()) pooled_ = true;
        if (!usable_) return false;
    }
    if (is_copy(result)) {
        // The server waits for rows that nobody sends, or sends rows that nobody reads. Without the session nothing of
        // the transaction is left.
        usable_ = false;
        if (!trip.fault)
            trip.fault = Fault{.at = awaited.at,
                               .sqlstate = "0A000",
                               .message = "COPY FROM STDIN and TO STDOUT have no input and output here",
                               .fatal = true};
        return false;
    }
    if (!trip.fault && awaited.kept) prepared_.insert(*awaited.kept);
    if (!trip.fault && !awaited.kept) trip.answers.push_back(std::move(rows));
    // A null pointer ends each answer.
    if (!await_answer(budget)) return lost();
    [[maybe_unused]] const Rows end(PQgetResult(connection_.get()));
    return true;
}

Fault Connection::fault_of(const PGresult* result, std::size_t at, const base::CallBudget& budget) {
    Fault fault{at,
                std::string(field(result, PG_DIAG_SQLSTATE)),
                scrubbed(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)),
                field(result, PG_DIAG_SEVERITY_NONLOCALIZED) != "ERROR",
                std::string(field(result, PG_DIAG_CONSTRAINT_NAME)),
                detail_of(result),
                std::string(field(result, PG_DIAG_CONTEXT))};
    if (fault.silent()) return broken(at, budget);
    if (fault.fatal) usable_ = false;
    return fault;
}

std::optional<Fault> Connection::begin_copy(const std::string& sql, const base::CallBudget& budget) {
    PGconn* const connection = connection_.get();
    // libpq knows no COPY in a pipeline.
    if (!drain(budget) || PQexitPipelineMode(connection) != 1 || PQsendQuery(connection, sql.c_str()) != 1 ||
        !flush(budget) || !await_answer(budget))
        return broken(0, budget);
    const Rows rows(PQgetResult(connection));
    if (PQresultStatus(rows.get()) == PGRES_COPY_IN) return std::nullopt;
    Fault fault = fault_of(rows.get(), 0, budget);
    // The first fault tells why.
    static_cast<void>(finish_copy(budget));
    return fault;
}

std::optional<Fault> Connection::put_copy(std::string_view data, const base::CallBudget& budget) {
    int queued = 0;
    while (usable_ && queued == 0) {
        queued = PQputCopyData(connection_.get(), data.data(), static_cast<int>(data.size()));
        // What libpq has queued is memory of ours.
        if (queued < 0 || !flush(budget)) usable_ = false;
    }
    return usable_ ? std::nullopt : std::optional(broken(0, budget));
}

std::optional<Fault> Connection::end_copy(const char* why_not, const base::CallBudget& budget) {
    int queued = 0;
    while (usable_ && queued == 0) {
        queued = PQputCopyEnd(connection_.get(), why_not);
        if (queued < 0 || !flush(budget)) usable_ = false;
    }
    if (!usable_) return broken(0, budget);
    return finish_copy(budget);
}

std::optional<Fault> Connection::finish_copy(const base::CallBudget& budget) {
    std::optional<Fault> fault;
    while (true) {
        if (!await_answer(budget)) return fault ? fault : broken(0, budget);
        const Rows rows(PQgetResult(connection_.get()));
        if (rows.get() == nullptr) break;
        if (PQresultStatus(rows.get()) == PGRES_FATAL_ERROR && !fault) fault = fault_of(rows.get(), 0, budget);
    }
    if (usable_ && PQenterPipelineMode(connection_.get()) != 1) usable_ = false;
    return fault;
}

void Connection::send_only(const Statement& statement) {
    if (!usable_) return;
    // Nobody waits for room in the socket here either: the rest of it goes out with the next trip.
    usable_ = statement.send(*connection_) && PQpipelineSync(connection_.get()) == 1 && PQflush(connection_.get()) >= 0;
    ++unread_;
}

bool Connection::drain(const base::CallBudget& budget) {
    while (usable_ && unread_ > 0) {
        if (!flush(budget) || !await_answer(budget)) return false;
        skip_answer();
    }
    return usable_;
}

void Connection::skip_answer() {
    const Rows rows(PQgetResult(connection_.get()));
    if (rows.get() == nullptr) return;
    if (PQresultStatus(rows.get()) == PGRES_PIPELINE_SYNC) --unread_;
    if (PQresultStatus(rows.get()) == PGRES_FATAL_ERROR && PQstatus(connection_.get()) == CONNECTION_BAD)
        usable_ = false;
}

void Connection::Finish::operator()(pg_conn* connection) const { PQfinish(connection); }

int Connection::socket() const { return PQsocket(connection_.get()); }

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
    // libpq finds no notification that arrived after an answer which was not read.
    while (usable_ && unread_ > 0 && PQisBusy(connection_.get()) == 0) skip_answer();
    while (PGnotify* const one = PQnotifies(connection_.get())) {
        found.emplace_back(one->relname);
        PQfreemem(one);
    }
    return found;
}

bool Connection::flush(const base::CallBudget& budget) {
    while (true) {
        const int left = PQflush(connection_.get());
        if (left == 0) return true;
        // A server that cannot send its answers reads no further statements, so wait for both directions.
        if (left < 0 || !await_socket(socket(), POLLIN | POLLOUT, budget) || PQconsumeInput(connection_.get()) != 1)
            return usable_ = false;
    }
}

bool Connection::await_answer(const base::CallBudget& budget) {
    while (PQisBusy(connection_.get()) == 1) {
        if (!await_socket(socket(), POLLIN, budget)) return usable_ = false;
        // What arrived before the connection broke still counts, so the results are asked, not this call.
        if (PQconsumeInput(connection_.get()) != 1 && PQisBusy(connection_.get()) == 1) return usable_ = false;
    }
    return true;
}

Fault Connection::broken(std::size_t at, const base::CallBudget& budget) {
    usable_ = false;
    const std::string said = scrubbed(PQerrorMessage(connection_.get()));
    return {at, "",
            said.empty() ? (budget.over() ? "the server did not answer in time" : "the connection broke") : said};
}

std::string Connection::scrubbed(const char* text) const {
    std::string clean = text == nullptr ? "" : text;
    while (clean.ends_with('\n')) clean.pop_back();
    std::ranges::replace(clean, '\n', ' ');
    const char* const password = PQpass(connection_.get());
    return base::without_secret(clean, password == nullptr ? "" : password);
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

}  // namespace holdfast::sql::postgres
