#include "sql/mysql/session.hpp"

#include "sql/mysql/cancel.hpp"
#include "sql/mysql/connection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>

namespace holdfast::sql::mysql {
namespace {

/// A statement of a user may take days. A server that is gone is noticed by TCP.
constexpr std::chrono::hours longest_statement{24 * 20};
constexpr std::chrono::seconds to_cancel{5};

struct Write {
    Sql& sql;

    void operator()(std::monostate) const { sql.null(); }
    void operator()(std::int64_t number) const { sql << number; }
    /// A hexadecimal literal is bytes; the introducer makes it text.
    void operator()(const std::string& text) const { (sql << "_utf8mb4 ").value(text); }
    void operator()(const SqlBytes& bytes) const { sql.value(bytes.bytes); }
};

/// Puts the values in the places of `$1`, `$2`…, except inside quotes. Only for statements of ours.
Sql bound(const Command& command) {
    if (command.values.empty()) return Sql::written_by_user(command.text);
    Sql sql;
    const std::string& text = command.text;
    std::size_t from = 0;
    char quote = '\0';
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (quote != '\0') {
            if (c == quote) quote = '\0';
            continue;
        }
        if (c == '\'' || c == '"' || c == '`') {
            quote = c;
            continue;
        }
        std::size_t number = 0;
        if (c != '$') continue;
        const auto [end, bad] = std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
        if (bad != std::errc{} || number == 0 || number > command.values.size()) continue;
        sql << Sql::written_by_user(text.substr(from, at - from));
        std::visit(Write{sql}, command.values[number - 1]);
        from = static_cast<std::size_t>(end - text.data());
        at = from - 1;
    }
    return sql << Sql::written_by_user(text.substr(from));
}

StatementError error_of(const Failure& failure) {
    return {failure.error_class(), std::to_string(failure.code), failure.text};
}

SqlAnswer answer_of(Answer& from) {
    SqlAnswer answer;
    answer.columns = from.columns();
    if (answer.columns.empty()) {
        answer.changed = static_cast<std::int64_t>(from.count());
        return answer;
    }
    while (const auto row = from.next()) {
        auto& cells = answer.rows.emplace_back();
        for (std::size_t i = 0; i < answer.columns.size(); ++i)
            cells.push_back(row->is_null(i) ? SqlCell() : SqlCell(row->text(i)));
    }
    return answer;
}

/// INSERTs with many rows each.
class MysqlRowWriter final : public RowWriter {
public:
    MysqlRowWriter(Connection& connection, std::string head, std::size_t largest)
        : connection_(&connection), head_(std::move(head)), largest_(largest) {}

    [[nodiscard]] std::expected<void, StatementError> add(
        std::span<const std::optional<std::string_view>> cells) override {
        Sql row("(");
        Comma comma;
        for (const auto& cell : cells) {
            row << comma.next();
            cell ? (row << "_utf8mb4 ").value(*cell) : row.null();
        }
        row << ")";
        if (head_.size() + row.packet().size() >= largest_) {
            if (auto sent = flush(); !sent) return sent;
            refused_ = sent_;
            return std::unexpected(
                StatementError{ErrorClass::constraint, "", "the row is longer than the server's max_allowed_packet"});
        }
        size_ += row.packet().size() + 2;
        rows_.push_back(std::move(row));
        return size_ < batch_size ? std::expected<void, StatementError>() : flush();
    }
    [[nodiscard]] std::expected<void, StatementError> finish() override { return flush(); }
    [[nodiscard]] std::optional<std::uint64_t> refused_row() const override { return refused_; }

private:
    static constexpr std::size_t batch_size = std::size_t{512} * 1024;

    [[nodiscard]] std::expected<void, Failure> insert(std::span<const Sql> rows) {
        Sql statement = Sql::written_by_user(head_);
        Comma comma;
        for (const Sql& row : rows) statement << comma.next() << row;
        auto done = connection_->run(statement, Deadline::never());
        if (!done) return std::unexpected(std::move(done.error()));
        return {};
    }

    [[nodiscard]] std::expected<void, StatementError> flush() {
        const std::size_t room = largest_ - head_.size();
        for (std::size_t from = 0; from < rows_.size();) {
            std::size_t size = rows_[from].packet().size();
            std::size_t to = from + 1;
            while (to < rows_.size() && size + rows_[to].packet().size() + 2 < room)
                size += rows_[to++].packet().size() + 2;
            const auto some = std::span(rows_).subspan(from, to - from);
            if (auto done = insert(some); !done) return std::unexpected(find_refused(some, done.error()));
            sent_ += some.size();
            from = to;
        }
        rows_.clear();
        size_ = 0;
        return {};
    }

    /// The server has undone all of them. Sent one by one, they show which row it refuses.
    [[nodiscard]] StatementError find_refused(std::span<const Sql> rows, const Failure& failure) {
        const auto kind = failure.error_class();
        const bool one_is_bad =
            kind == ErrorClass::other || kind == ErrorClass::constraint || kind == ErrorClass::duplicate;
        for (std::size_t i = 0; one_is_bad && i < rows.size(); ++i) {
            const auto alone = insert(rows.subspan(i, 1));
            if (alone) continue;
            refused_ = sent_ + i;
            return error_of(alone.error());
        }
        return error_of(failure);
    }

    Connection* connection_;
    std::string head_;     ///< Up to VALUES.
    std::size_t largest_;  ///< Packet that the server takes.
    std::vector<Sql> rows_{};
    std::size_t size_ = 0;  ///< Of their texts.
    std::uint64_t sent_ = 0;
    std::optional<std::uint64_t> refused_{};
};

class MysqlSession final : public Session {
public:
    MysqlSession(std::unique_ptr<const Address> address, Address::Endpoint endpoint, Connection connection,
                 const Clock& clock)
        : address_(std::move(address)),
          endpoint_(std::move(endpoint)),
          connection_(std::move(connection)),
          clock_(&clock) {}

    /// Puts the session into a known state, and finds out what the server is.
    [[nodiscard]] Result<void> set_up(Deadline deadline) {
        auto asked = run({.text = "SET SESSION autocommit = 1, completion_type = 0", .values = {}}, deadline);
        if (asked) asked = run({.text = "SELECT CONNECTION_ID(), VERSION()", .values = {}}, deadline);
        if (!asked) return std::unexpected(sql::error_of(asked.error(), "use " + place()));
        id_ = std::atoll(asked->rows.at(0).at(0).value_or("0").c_str());
        server_.version = asked->rows.at(0).at(1).value_or("");
        const auto galera = run({.text = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'", .values = {}}, deadline);
        if (!galera) return std::unexpected(sql::error_of(galera.error(), "use " + place()));
        server_.galera = !galera->rows.empty() && galera->rows[0].at(1).value_or("") == "ON";
        server_.tidb = server_.version.find("TiDB") != std::string::npos;
        server_.mariadb = server_.version.find("MariaDB") != std::string::npos;
        auto canceller = Canceller::of(connection_, *address_, endpoint_, *clock_, deadline);
        server_.pooled = !canceller;
        if (canceller) canceller_ = std::move(*canceller);
        return {};
    }

    [[nodiscard]] SqlDialect dialect() const override { return SqlDialect::mysql; }
    [[nodiscard]] const ServerKind& server() const override { return server_; }
    [[nodiscard]] std::int64_t server_id() const override { return id_; }
    [[nodiscard]] const std::string& place() const override { return address_->shown; }
    [[nodiscard]] bool is_usable() const override { return connection_.is_usable(); }
    /// Its failure has no reader: the caller repeats it until the statement has ended.
    void cancel() override {
        if (canceller_) (void)canceller_->cancel(Deadline::in(*clock_, to_cancel));
    }

    [[nodiscard]] std::expected<SqlAnswer, StatementError> run(const Command& command, Deadline deadline) override {
        auto answers = connection_.run(bound(command), deadline);
        if (!answers) return std::unexpected(error_of(answers.error()));
        return answer_of(answers->back());
    }

    [[nodiscard]] std::expected<std::unique_ptr<RowWriter>, StatementError> write_rows(
        const std::string& table, const std::vector<std::string>& columns) override {
        const auto largest = run({.text = "SELECT @@SESSION.max_allowed_packet", .values = {}}, Deadline::never());
        if (!largest) return std::unexpected(largest.error());
        return std::make_unique<MysqlRowWriter>(
            connection_, fmt::format("INSERT INTO {} ({}) VALUES ", table, fmt::join(columns, ", ")),
            static_cast<std::size_t>(std::atoll(largest->rows.at(0).at(0).value_or("0").c_str())));
    }

private:
    std::unique_ptr<const Address> address_;  ///< Does not move: the connection and the canceller point to it.
    Address::Endpoint endpoint_;
    Connection connection_;
    const Clock* clock_;
    std::optional<Canceller> canceller_{};
    ServerKind server_{};
    std::int64_t id_ = 0;
};

}  // namespace

Result<std::unique_ptr<Session>> open_session(base::Url url, const Clock& clock, Deadline deadline) {
    auto parsed = Address::of(url);
    if (!parsed) return std::unexpected(parsed.error());
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    auto address = std::make_unique<const Address>(std::move(*parsed));
    std::optional<Failure> last;
    for (const Address::Endpoint& endpoint : address->endpoints) {
        auto connection = Connection::open(*address, endpoint, clock, deadline);
        if (!connection) {
            last = std::move(connection.error());
            continue;
        }
        connection->allow_silence(longest_statement);
        Address::Endpoint used = endpoint;
        auto session =
            std::make_unique<MysqlSession>(std::move(address), std::move(used), std::move(*connection), clock);
        if (auto ready = session->set_up(deadline); !ready) return std::unexpected(ready.error());
        return session;
    }
    const std::string doing = "connect to " + address->shown;
    return std::unexpected(last ? error_of(*last, doing) : Error{Errc::usage, "cannot " + doing});
}

}  // namespace holdfast::sql::mysql
