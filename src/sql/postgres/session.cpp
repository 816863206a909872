#include "sql/postgres/session.hpp"

#include "sql/postgres/cancel.hpp"
#include "sql/postgres/connection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
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
    std::string text(PQgetvalue(result, row, column), static_cast<std::size_t>(PQgetlength(result, row, column)));
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

/// The number of the row in `COPY users, line 17, column id: …`, counted from 0. The words are translated, the order of
/// table and number is not.
std::optional<std::uint64_t> row_of_copy(std::string_view context, std::string_view table) {
    const auto name = context.find(table);
    if (name == std::string_view::npos) return std::nullopt;
    const auto digits = context.find_first_of("0123456789", name + table.size());
    if (digits == std::string_view::npos) return std::nullopt;
    std::uint64_t number = 0;
    std::from_chars(context.data() + digits, context.data() + context.size(), number);
    return number == 0 ? std::nullopt : std::optional(number - 1);
}

/// COPY, in the server's text form.
class PostgresRowWriter final : public RowWriter {
public:
    PostgresRowWriter(Connection& connection, std::string table, const Clock& clock)
        : connection_(&connection), table_(std::move(table)), clock_(&clock) {}
    ~PostgresRowWriter() override {
        if (open_) static_cast<void>(connection_->end_copy("given up", budget()));
    }

    [[nodiscard]] std::expected<void, StatementError> begin(const std::vector<std::string>& columns) {
        const auto fault =
            connection_->begin_copy(fmt::format("COPY {} ({}) FROM STDIN", table_, fmt::join(columns, ", ")), budget());
        open_ = !fault;
        return answer(fault);
    }
    [[nodiscard]] std::expected<void, StatementError> add(
        std::span<const std::optional<std::string_view>> cells) override {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) data_ += '\t';
            cells[i] ? escape(*cells[i]) : void(data_ += "\\N");
        }
        data_ += '\n';
        return data_.size() < batch_size ? std::expected<void, StatementError>() : flush();
    }
    [[nodiscard]] std::expected<void, StatementError> finish() override {
        if (auto sent = flush(); !sent) return sent;
        open_ = false;
        return answer(connection_->end_copy(nullptr, budget()));
    }
    [[nodiscard]] std::optional<std::uint64_t> refused_row() const override { return refused_; }

private:
    static constexpr std::size_t batch_size = std::size_t{256} * 1024;

    [[nodiscard]] base::CallBudget budget() const { return {*clock_, Deadline::never(), longest_statement}; }

    void escape(std::string_view text) {
        while (true) {
            const auto plain = text.find_first_of("\\\t\n\r");
            data_ += text.substr(0, plain);
            if (plain == std::string_view::npos) return;
            const char c = text[plain];
            data_ += '\\';
            data_ += c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : '\\';
            text.remove_prefix(plain + 1);
        }
    }
    [[nodiscard]] std::expected<void, StatementError> flush() {
        const auto fault = data_.empty() ? std::nullopt : connection_->put_copy(data_, budget());
        data_.clear();
        return answer(fault);
    }
    [[nodiscard]] std::expected<void, StatementError> answer(const std::optional<Fault>& fault) {
        if (!fault) return {};
        // The server names the table without quotes and without its schema.
        std::string name = table_.substr(table_.rfind('.') == std::string::npos ? 0 : table_.rfind('.') + 1);
        std::erase(name, '"');
        refused_ = row_of_copy(fault->context, name);
        return std::unexpected(error_of(*fault));
    }

    Connection* connection_;
    std::string table_;
    const Clock* clock_;
    std::string data_{};
    bool open_ = false;
    std::optional<std::uint64_t> refused_{};
};

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

    [[nodiscard]] std::expected<std::unique_ptr<RowWriter>, StatementError> write_rows(
        const std::string& table, const std::vector<std::string>& columns) override {
        auto writer = std::make_unique<PostgresRowWriter>(*connection_, table, *clock_);
        if (auto begun = writer->begin(columns); !begun) return std::unexpected(begun.error());
        return writer;
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
