#include "sql/postgres/session.hpp"

#include "sql/postgres/cancel.hpp"
#include "sql/postgres/connection.hpp"

#include <cstdlib>
#include <libpq-fe.h>

namespace holdfast::sql::postgres {
namespace {

/// A statement of a user may take days. A server that is gone is noticed by TCP.
constexpr std::chrono::hours longest_statement{24 * 20};
constexpr std::chrono::seconds to_connect{10};
constexpr Oid bytea = 17;

struct Bind {
    Statement& statement;

    void operator()(std::monostate) const { statement.bind_null(); }
    void operator()(std::int64_t number) const { statement.bind(std::optional(number)); }
    void operator()(const std::string& text) const { statement.bind(std::string_view(text)); }
    void operator()(const SqlBytes& value) const {
        statement.bind(std::optional(
            base::ByteView(reinterpret_cast<const std::uint8_t*>(value.bytes.data()), value.bytes.size())));
    }
};

Statement statement_of(const Command& command) {
    Statement statement(command.text);
    for (const SqlValue& value : command.values) std::visit(Bind{statement}, value);
    return std::move(statement.answer_as_text());
}

SqlCell cell_of(const PGresult* result, int row, int column) {
    if (PQgetisnull(result, row, column) != 0) return std::nullopt;
    const std::string text(PQgetvalue(result, row, column), static_cast<std::size_t>(PQgetlength(result, row, column)));
    if (PQftype(result, column) != bytea) return text;
    std::size_t size = 0;
    const std::unique_ptr<unsigned char, decltype(&PQfreemem)> bytes(
        PQunescapeBytea(reinterpret_cast<const unsigned char*>(text.c_str()), &size), PQfreemem);
    return std::string(reinterpret_cast<const char*>(bytes.get()), size);
}

SqlAnswer answer_of(const Rows& rows) {
    PGresult* const result = rows.get();
    SqlAnswer answer;
    const int columns = PQnfields(result);
    for (int i = 0; i < columns; ++i) answer.columns.emplace_back(PQfname(result, i));
    for (int row = 0; row < PQntuples(result); ++row) {
        auto& cells = answer.rows.emplace_back();
        for (int i = 0; i < columns; ++i) cells.push_back(cell_of(result, row, i));
    }
    // PQcmdTuples counts rows that were read, too.
    if (!rows.command().starts_with("SELECT")) answer.changed = std::atoll(PQcmdTuples(result));
    return answer;
}

StatementError error_of(const Fault& fault) {
    std::string message = fault.message;
    if (!fault.detail.empty()) message += "; " + fault.detail;
    return {fault.error_class(), fault.sqlstate, std::move(message)};
}

class PostgresSession final : public Session {
public:
    PostgresSession(std::unique_ptr<Connection> connection, std::string place, std::string version, const Clock& clock)
        : connection_(std::move(connection)), canceller_(*connection_), place_(std::move(place)), clock_(&clock) {
        server_.version = std::move(version);
        server_.pooled = connection_->is_pooled();
    }

    [[nodiscard]] SqlDialect dialect() const override { return SqlDialect::postgres; }
    [[nodiscard]] const ServerKind& server() const override { return server_; }
    [[nodiscard]] std::int64_t server_id() const override { return PQbackendPID(connection_->handle()); }
    [[nodiscard]] const std::string& place() const override { return place_; }
    [[nodiscard]] bool is_usable() const override { return connection_->is_usable(); }
    /// Its failure has no reader: the caller repeats it until the statement has ended.
    void cancel() override { (void)canceller_.cancel(); }

    [[nodiscard]] std::expected<SqlAnswer, StatementError> run(const Command& command, Deadline deadline) override {
        auto answers = run_all({&command, 1}, deadline);
        if (!answers) return std::unexpected(std::move(answers.error()));
        return std::move(answers->front());
    }

    [[nodiscard]] std::expected<std::vector<SqlAnswer>, StatementError> run_all(std::span<const Command> commands,
                                                                                Deadline deadline) override {
        std::vector<Statement> statements;
        for (const Command& command : commands) statements.push_back(statement_of(command));
        const Trip trip = connection_->run(statements, base::CallBudget(*clock_, deadline, longest_statement));
        if (trip.fault) return std::unexpected(error_of(*trip.fault));
        // Whether a standby has the commit is not known, so it counts as one that was not answered.
        if (trip.half_committed)
            return std::unexpected(StatementError{ErrorClass::connection_lost, "01000",
                                                  "the wait for a synchronous standby was cancelled"});
        std::vector<SqlAnswer> answers;
        for (const Rows& rows : trip.answers) answers.push_back(answer_of(rows));
        // The answer to a COMMIT of a transaction that had failed.
        for (std::size_t i = 0; i < answers.size(); ++i)
            if (commands[i].text == "COMMIT" && trip.answers[i].command() == "ROLLBACK")
                return std::unexpected(
                    StatementError{ErrorClass::conflict, "25P02", "the transaction had failed and was rolled back"});
        return answers;
    }

private:
    std::unique_ptr<Connection> connection_;
    Canceller canceller_;
    std::string place_;
    const Clock* clock_;
    ServerKind server_{};
};

}  // namespace

Result<std::unique_ptr<Session>> open_session(base::Url url, const Clock& clock, Deadline deadline) {
    auto address = Address::of(std::move(url));
    if (!address) return std::unexpected(address.error());
    const base::CallBudget budget(clock, deadline, to_connect);
    auto connection = Connection::open(*address, budget);
    if (!connection) return std::unexpected(connection.error());
    const Trip trip = (*connection)->run(Statement("SELECT pg_catalog.current_setting('server_version')"), budget);
    if (trip.fault) return std::unexpected(sql::error_of(error_of(*trip.fault), "use " + address->url));
    const std::string version(trip.answers.front().text(0, 0));
    return std::make_unique<PostgresSession>(std::move(*connection), address->url, version, clock);
}

}  // namespace holdfast::sql::postgres
