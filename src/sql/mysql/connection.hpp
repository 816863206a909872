#pragma once

#include "base/call_budget.hpp"
#include "holdfast/clock.hpp"
#include "sql/mysql/address.hpp"
#include "sql/mysql/failure.hpp"
#include "sql/mysql/rows.hpp"
#include "sql/mysql/sql.hpp"

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The driver's own types, so that its header stays out of this one.
struct st_mysql;
struct st_mysql_res;
struct st_mysql_stmt;

namespace holdfast::sql::mysql {

/// One row of an answer. Lives as long as the answer.
class Row {
public:
    Row(char** fields, const unsigned long* lengths) : fields_(fields), lengths_(lengths) {}

    [[nodiscard]] bool is_null(std::size_t column) const { return fields_[column] == nullptr; }
    /// Empty for NULL, too.
    [[nodiscard]] std::string_view text(std::size_t column) const;
    [[nodiscard]] base::ByteView bytes(std::size_t column) const;
    /// 0 for NULL, and for what is not a number.
    [[nodiscard]] std::int64_t number(std::size_t column) const;

private:
    char** fields_;
    const unsigned long* lengths_;
};

/// What one statement gave.
class Answer {
public:
    /// `count`: of the rows that it gave, or else that it found and changed.
    Answer(st_mysql_res* rows, std::uint64_t count) : rows_(rows), count_(count) {}

    [[nodiscard]] std::optional<Row> next();
    [[nodiscard]] std::uint64_t count() const { return count_; }
    /// Their names; none for a statement without rows.
    [[nodiscard]] std::vector<std::string> columns() const;
    /// Where the column of this name is, if there is one.
    [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;

private:
    struct Free {
        void operator()(st_mysql_res* rows) const;
    };
    std::unique_ptr<st_mysql_res, Free> rows_;  ///< Null for a statement without rows.
    std::uint64_t count_;
};
using Answers = std::vector<Answer>;  ///< One for each statement of the packet.

/// One connection to one server. Every wait for the network ends with the caller's deadline, or after
/// `base::CallBudget::longest_silence` of real time; the connection is of no use after that.
class Connection {
public:
    [[nodiscard]] static std::expected<Connection, Failure> open(const Address& address,
                                                                 const Address::Endpoint& endpoint, const Clock& clock,
                                                                 Deadline deadline);

    /// Sends all of it in one packet and reads all answers.
    [[nodiscard]] std::expected<Answers, Failure> run(const Sql& sql, Deadline deadline);

    /// How long the server may be silent from now on, for statements of users, which take their time.
    void allow_silence(std::chrono::milliseconds time) { silence_ = time; }

    /// Whether it can run a statement for many rows at once. MariaDB can, most proxies cannot.
    [[nodiscard]] bool takes_rows() const { return takes_rows_; }
    /// One statement without an answer, for all rows or none. The server keeps it, parsed, for the next time. Returns
    /// how many rows it found or wrote; INSERT ON DUPLICATE KEY UPDATE counts a row that it updated as two.
    [[nodiscard]] std::expected<std::uint64_t, Failure> run(const Sql& statement, BoundRows& rows, Deadline deadline);

    /// Whether it can be used again.
    [[nodiscard]] bool is_usable() const { return usable_; }
    void discard() { usable_ = false; }
    /// The server has said nothing since it was asked last, not even that it ended.
    [[nodiscard]] bool is_alive() const;

    [[nodiscard]] std::string_view server_version() const;
    /// As in 101106 for 10.11.6.
    [[nodiscard]] unsigned long version_number() const;
    /// The number that the server gave it when it connected.
    [[nodiscard]] std::uint64_t told_id() const;
    [[nodiscard]] bool encrypted() const;
    [[nodiscard]] int socket() const;

private:
    Connection(const Address& address, const Clock& clock);

    struct CloseStatement {
        void operator()(st_mysql_stmt* statement) const;
    };
    struct CloseConnection {
        void operator()(st_mysql* handle) const;
    };
    using Statement = std::unique_ptr<st_mysql_stmt, CloseStatement>;

    void configure(const Address& address);
    [[nodiscard]] std::expected<st_mysql_stmt*, Failure> kept(const Sql& text, Deadline deadline);
    [[nodiscard]] std::expected<std::uint64_t, Failure> execute(st_mysql_stmt* statement, BoundRows& rows,
                                                                Deadline deadline);
    /// Waits for what the driver waits for. A deadline that passes is reported to the driver as its own timeout.
    [[nodiscard]] int await(int events, Deadline deadline);
    [[nodiscard]] Failure failure(std::size_t statement);
    [[nodiscard]] Failure failure_of(st_mysql_stmt* statement);
    [[nodiscard]] Failure failure_with(Failure failure);

    const Address* address_;  ///< For messages. Belongs to the store.
    const Clock* clock_;
    /// By their texts. Before the handle, so that they go after it: they do not tell the server then.
    std::map<std::string, Statement, std::less<>> statements_{};
    bool takes_rows_ = false;
    std::unique_ptr<st_mysql, CloseConnection> handle_;
    std::chrono::milliseconds silence_ = base::CallBudget::longest_silence;
    bool usable_ = false;
    bool timed_out_ = false;
};

}  // namespace holdfast::sql::mysql
