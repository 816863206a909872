#pragma once

#include "holdfast/clock.hpp"
#include "stores/common/call_budget.hpp"
#include "stores/mysql/config.hpp"
#include "stores/mysql/failure.hpp"
#include "stores/mysql/rows.hpp"
#include "stores/mysql/sql.hpp"

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mysql.h>
#include <optional>
#include <string_view>
#include <vector>

namespace holdfast::stores::mysql {

/// One row of an answer. Lives as long as the answer.
class Row {
public:
    Row(MYSQL_ROW fields, const unsigned long* lengths) : fields_(fields), lengths_(lengths) {}

    [[nodiscard]] bool is_null(std::size_t column) const { return fields_[column] == nullptr; }
    /// Empty for NULL, too.
    [[nodiscard]] std::string_view text(std::size_t column) const;
    [[nodiscard]] base::ByteView bytes(std::size_t column) const;
    /// 0 for NULL, and for what is not a number.
    [[nodiscard]] std::int64_t number(std::size_t column) const;

private:
    MYSQL_ROW fields_;
    const unsigned long* lengths_;
};

/// What one statement gave.
class Answer {
public:
    explicit Answer(MYSQL_RES* rows) : rows_(rows, mysql_free_result) {}

    [[nodiscard]] std::optional<Row> next();
    [[nodiscard]] std::size_t count() const { return rows_ ? mysql_num_rows(rows_.get()) : 0; }
    /// Where the column of this name is, if there is one.
    [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;

private:
    std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> rows_;  ///< Null for a statement without rows.
};
using Answers = std::vector<Answer>;  ///< One for each statement of the packet.

/// One connection to one server. Every wait for the network ends with the caller's deadline, or after
/// `CallBudget::longest_silence` of real time; the connection is of no use after that.
class Connection {
public:
    [[nodiscard]] static std::expected<Connection, Failure> open(const Address& address,
                                                                 const Address::Endpoint& endpoint, const Clock& clock,
                                                                 Deadline deadline);

    /// Sends all of it in one packet and reads all answers.
    [[nodiscard]] std::expected<Answers, Failure> run(const Sql& sql, Deadline deadline);

    /// Whether it can run a statement for many rows at once. MariaDB can, most proxies cannot.
    [[nodiscard]] bool takes_rows() const { return takes_rows_; }
    /// One statement without an answer, for all rows or none. The server keeps it, parsed, for the next time.
    [[nodiscard]] std::expected<void, Failure> run(const Sql& statement, BoundRows& rows, Deadline deadline);

    /// From now on every statement belongs to a transaction, which it begins if there is none. Who only looks has to
    /// end it.
    [[nodiscard]] std::expected<void, Failure> stay_in_transactions(Deadline deadline);
    /// `run`, with nothing left open.
    [[nodiscard]] std::expected<Answers, Failure> look(const Sql& sql, Deadline deadline);

    /// Whether it can be used again.
    [[nodiscard]] bool is_usable() const { return usable_; }
    void discard() { usable_ = false; }
    /// The server has said nothing since it was asked last, not even that it ended.
    [[nodiscard]] bool is_alive() const;

    [[nodiscard]] std::string_view server_version() const { return mysql_get_server_info(handle_.get()); }
    /// As in 101106 for 10.11.6.
    [[nodiscard]] unsigned long version_number() const { return mysql_get_server_version(handle_.get()); }
    /// The number that the server gave it when it connected.
    [[nodiscard]] std::uint64_t told_id() const { return mysql_thread_id(handle_.get()); }
    [[nodiscard]] bool encrypted() const { return mysql_get_ssl_cipher(handle_.get()) != nullptr; }

private:
    Connection(const Address& address, const Clock& clock);

    /// By what the server said with its last answer.
    [[nodiscard]] bool commits_each_statement() const;

    using Statement = std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)>;

    void configure(const Address& address);
    [[nodiscard]] std::expected<MYSQL_STMT*, Failure> kept(const Sql& text, Deadline deadline);
    [[nodiscard]] std::expected<void, Failure> execute(MYSQL_STMT* statement, BoundRows& rows, Deadline deadline);
    /// Waits for what the driver waits for. A deadline that passes is reported to the driver as its own timeout.
    [[nodiscard]] int await(int events, Deadline deadline);
    [[nodiscard]] Failure failure(std::size_t statement);
    [[nodiscard]] Failure failure_of(MYSQL_STMT* statement);
    [[nodiscard]] Failure failure_with(Failure failure);

    const Address* address_;  ///< For messages. Belongs to the store.
    const Clock* clock_;
    /// By their texts. Before the handle, so that they go after it: they do not tell the server then.
    std::map<std::string, Statement, std::less<>> statements_{};
    bool takes_rows_ = false;
    std::unique_ptr<MYSQL, decltype(&mysql_close)> handle_;
    bool usable_ = false;
    bool timed_out_ = false;
};

}  // namespace holdfast::stores::mysql
