#include "sql/mysql/connection.hpp"

#include <algorithm>
#include <charconv>
#include <errmsg.h>
#include <fcntl.h>
#include <mysql.h>
#include <poll.h>
#include <span>

namespace holdfast::sql::mysql {
namespace {

using std::chrono::milliseconds;

/// Of the driver's coroutine. Its own default is too little for some name services.
constexpr std::size_t stack_size = std::size_t{256} << 10U;

/// How often a wait looks whether a deadline has passed on a clock that is not the poll's.
constexpr milliseconds slice{1000};

}  // namespace

std::string_view Row::text(std::size_t column) const {
    return is_null(column) ? std::string_view() : std::string_view(fields_[column], lengths_[column]);
}

base::ByteView Row::bytes(std::size_t column) const {
    const std::string_view all = text(column);
    return {reinterpret_cast<const std::uint8_t*>(all.data()), all.size()};
}

std::int64_t Row::number(std::size_t column) const {
    const std::string_view all = text(column);
    std::int64_t number = 0;
    std::from_chars(all.data(), all.data() + all.size(), number);
    return number;
}

void Answer::Free::operator()(st_mysql_res* rows) const { mysql_free_result(rows); }

std::optional<Row> Answer::next() {
    if (!rows_) return std::nullopt;
    char** const row = mysql_fetch_row(rows_.get());
    if (row == nullptr) return std::nullopt;
    return Row(row, mysql_fetch_lengths(rows_.get()));
}

std::vector<std::string> Answer::columns() const {
    std::vector<std::string> names;
    if (!rows_) return names;
    for (const MYSQL_FIELD& field : std::span(mysql_fetch_fields(rows_.get()), mysql_num_fields(rows_.get())))
        names.emplace_back(field.name);
    return names;
}

std::optional<std::size_t> Answer::column(std::string_view name) const {
    if (!rows_) return std::nullopt;
    const std::span fields(mysql_fetch_fields(rows_.get()), mysql_num_fields(rows_.get()));
    const auto found = std::ranges::find_if(fields, [&](const MYSQL_FIELD& field) { return name == field.name; });
    if (found == fields.end()) return std::nullopt;
    return static_cast<std::size_t>(found - fields.begin());
}

Connection::Connection(const Address& address, const Clock& clock)
    : address_(&address), clock_(&clock), handle_(mysql_init(nullptr)) {
    configure(address);
}

void Connection::CloseStatement::operator()(st_mysql_stmt* statement) const { mysql_stmt_close(statement); }
void Connection::CloseConnection::operator()(st_mysql* handle) const { mysql_close(handle); }

std::string_view Connection::server_version() const { return mysql_get_server_info(handle_.get()); }
unsigned long Connection::version_number() const { return mysql_get_server_version(handle_.get()); }
std::uint64_t Connection::told_id() const { return mysql_thread_id(handle_.get()); }
int Connection::socket() const { return mysql_get_socket(handle_.get()); }

bool Connection::encrypted() const { return mysql_get_ssl_cipher(handle_.get()) != nullptr; }

void Connection::configure(const Address& address) {
    MYSQL* const handle = handle_.get();
    const my_bool yes = 1;
    const unsigned int none = 0;
    mysql_options(handle, MYSQL_OPT_NONBLOCK, &stack_size);
    mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    // Otherwise a server could ask for any file that this process can read.
    mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &none);
    // A connection that the driver replaces by itself would have none of our settings, nor our transaction.
    const my_bool no = 0;
    mysql_options(handle, MYSQL_OPT_RECONNECT, &no);
    const unsigned int protocol = address.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_options(handle, MYSQL_OPT_PROTOCOL, &protocol);
    if (address.tls == Tls::off) return;
    mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &yes);
    mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
    if (!address.tls_ca.empty()) mysql_options(handle, MYSQL_OPT_SSL_CA, address.tls_ca.c_str());
}

std::expected<Connection, Failure> Connection::open(const Address& address, const Address::Endpoint& endpoint,
                                                    const Clock& clock, Deadline deadline) {
    Connection connection(address, clock);
    MYSQL* const handle = connection.handle_.get();
    // Found rows, not changed ones: a statement that finds its row and leaves it as it is has not failed.
    constexpr unsigned long flags = CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS;
    const char* const socket = address.socket.empty() ? nullptr : address.socket.c_str();
    const char* const host = socket == nullptr ? endpoint.host.c_str() : nullptr;
    MYSQL* connected = nullptr;
    int events = mysql_real_connect_start(&connected, handle, host, address.user.c_str(), address.password.c_str(),
                                          address.database.c_str(), endpoint.port, socket, flags);
    while (events != 0) events = mysql_real_connect_cont(&connected, handle, connection.await(events, deadline));
    if (connected == nullptr) return std::unexpected(connection.failure(0));
    // Commands that a holder starts must not inherit it.
    fcntl(mysql_get_socket(handle), F_SETFD, FD_CLOEXEC);
    connection.usable_ = true;
    unsigned int can = 0;
    mariadb_get_infov(handle, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &can);
    connection.takes_rows_ = (can & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32U)) != 0;
    return connection;
}

std::expected<Answers, Failure> Connection::run(const Sql& sql, Deadline deadline) {
    MYSQL* const handle = handle_.get();
    const std::string& packet = sql.packet();
    Answers answers;
    int status = 0;
    int events = mysql_real_query_start(&status, handle, packet.data(), packet.size());
    while (events != 0) events = mysql_real_query_cont(&status, handle, await(events, deadline));
    // Not 1 alone: a connection that was reset while it idled says -1, which further down means that all was answered.
    if (status != 0) return std::unexpected(failure(0));
    while (true) {
        if (status > 0) return std::unexpected(failure(answers.size()));
        MYSQL_RES* rows = nullptr;
        events = mysql_store_result_start(&rows, handle);
        while (events != 0) events = mysql_store_result_cont(&rows, handle, await(events, deadline));
        if (rows == nullptr && mysql_field_count(handle) != 0) return std::unexpected(failure(answers.size()));
        answers.emplace_back(rows, mysql_affected_rows(handle));
        if (mysql_more_results(handle) == 0) return answers;
        events = mysql_next_result_start(&status, handle);
        while (events != 0) events = mysql_next_result_cont(&status, handle, await(events, deadline));
    }
}

std::expected<std::uint64_t, Failure> Connection::run(const Sql& statement, BoundRows& rows, Deadline deadline) {
    auto found = kept(statement, deadline);
    if (!found) return std::unexpected(found.error());
    auto done = execute(*found, rows, deadline);
    // Behind a proxy it can be another server by now.
    if (!done && done.error().statement_forgotten()) statements_.erase(statement.packet());
    return done;
}

std::expected<MYSQL_STMT*, Failure> Connection::kept(const Sql& text, Deadline deadline) {
    if (const auto found = statements_.find(text.packet()); found != statements_.end()) return found->second.get();
    Statement statement(mysql_stmt_init(handle_.get()));
    int status = 0;
    int events = mysql_stmt_prepare_start(&status, statement.get(), text.packet().data(), text.packet().size());
    while (events != 0) events = mysql_stmt_prepare_cont(&status, statement.get(), await(events, deadline));
    if (status != 0) {
        Failure failure = failure_of(statement.get());
        if (failure.too_many_statements()) takes_rows_ = false;
        return std::unexpected(std::move(failure));
    }
    return statements_.emplace(text.packet(), std::move(statement)).first->second.get();
}

std::expected<std::uint64_t, Failure> Connection::execute(MYSQL_STMT* statement, BoundRows& rows, Deadline deadline) {
    const auto count = static_cast<unsigned int>(rows.count());
    mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &count);
    std::vector<MYSQL_BIND> binds = rows.binds();
    if (mysql_stmt_bind_param(statement, binds.data()) != 0) return std::unexpected(failure_of(statement));
    int status = 0;
    int events = mysql_stmt_execute_start(&status, statement);
    while (events != 0) events = mysql_stmt_execute_cont(&status, statement, await(events, deadline));
    if (status != 0) return std::unexpected(failure_of(statement));
    return mysql_stmt_affected_rows(statement);
}

bool Connection::is_alive() const {
    pollfd listening{mysql_get_socket(handle_.get()), POLLIN | POLLRDHUP, 0};
    return poll(&listening, 1, 0) == 0;
}

int Connection::await(int events, Deadline deadline) {
    pollfd waiting{mysql_get_socket(handle_.get()), 0, 0};
    if ((events & MYSQL_WAIT_READ) != 0) waiting.events |= POLLIN;
    if ((events & MYSQL_WAIT_WRITE) != 0) waiting.events |= POLLOUT;
    if ((events & MYSQL_WAIT_EXCEPT) != 0) waiting.events |= POLLPRI;
    const base::CallBudget budget(*clock_, deadline, silence_);
    while (true) {
        // In slices, because a clock that a test moves by hand does not wake poll.
        const int ready = poll(&waiting, 1, static_cast<int>(std::min(slice, budget.left()).count()));
        if (ready <= 0 && !budget.over()) continue;
        if (ready <= 0) break;
        int happened = 0;
        if ((waiting.revents & (POLLIN | POLLHUP | POLLERR)) != 0) happened |= events & MYSQL_WAIT_READ;
        if ((waiting.revents & (POLLOUT | POLLHUP | POLLERR)) != 0) happened |= events & MYSQL_WAIT_WRITE;
        if ((waiting.revents & (POLLPRI | POLLHUP | POLLERR)) != 0) happened |= events & MYSQL_WAIT_EXCEPT;
        return happened;
    }
    timed_out_ = true;
    return MYSQL_WAIT_TIMEOUT;
}

Failure Connection::failure(std::size_t statement) {
    return failure_with({mysql_errno(handle_.get()), mysql_error(handle_.get()), statement});
}

Failure Connection::failure_of(MYSQL_STMT* statement) {
    return failure_with({mysql_stmt_errno(statement), mysql_stmt_error(statement)});
}

Failure Connection::failure_with(Failure failure) {
    if (timed_out_) {
        usable_ = false;
        return {CR_SERVER_LOST, "no answer in time", failure.statement};
    }
    failure.text = base::without_secret(failure.text, address_->password);
    if (failure.lost()) usable_ = false;
    return failure;
}

}  // namespace holdfast::sql::mysql
