#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct st_mysql;

namespace holdfast::tests {

/// A plain connection to a test server, as somebody with a SQL shell has it.
class MysqlByHand {
public:
    using Rows = std::vector<std::vector<std::string>>;

    explicit MysqlByHand(std::uint16_t port, const std::string& database = "");
    MysqlByHand(const MysqlByHand&) = delete;
    MysqlByHand& operator=(const MysqlByHand&) = delete;
    ~MysqlByHand();

    /// Runs one statement. Throws if it fails. NULL is `NULL`.
    Rows run(const std::string& sql);
    /// The only value that it gives.
    [[nodiscard]] std::string value(const std::string& sql) { return run(sql).at(0).at(0); }
    /// How many rows the last statement matched or changed.
    [[nodiscard]] std::uint64_t affected() const;

private:
    st_mysql* connection_;
};

/// A database with a random name on a test server; dropped when it goes.
class MysqlDatabase {
public:
    explicit MysqlDatabase(std::uint16_t port);
    MysqlDatabase(const MysqlDatabase&) = delete;
    MysqlDatabase& operator=(const MysqlDatabase&) = delete;
    ~MysqlDatabase();

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// For `open_store`.
    [[nodiscard]] std::string url() const;

private:
    std::uint16_t port_;
    std::string name_;
};

/// `x'…'`
[[nodiscard]] std::string hex_literal(const std::string& bytes);

}  // namespace holdfast::tests
