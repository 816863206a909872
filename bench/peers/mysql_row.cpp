#include "peers/mysql_row.hpp"

#include "harness/programs.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <mysql.h>

namespace holdfast::bench {
namespace {

/// One statement with one parameter, a text.
class Statement {
public:
    Statement(MYSQL* connection, std::string_view sql) : statement_(mysql_stmt_init(connection), mysql_stmt_close) {
        if (mysql_stmt_prepare(statement_.get(), sql.data(), sql.size()) != 0)
            give_up(mysql_stmt_error(statement_.get()));
    }

    void run(std::string& text) {
        MYSQL_BIND parameter{};
        unsigned long size = text.size();
        parameter.buffer_type = MYSQL_TYPE_STRING;
        parameter.buffer = text.data();
        parameter.buffer_length = size;
        parameter.length = &size;
        if (mysql_stmt_bind_param(statement_.get(), &parameter) || mysql_stmt_execute(statement_.get()) != 0 ||
            mysql_stmt_affected_rows(statement_.get()) != 1)
            give_up(fmt::format("the lease row was not written: {}", mysql_stmt_error(statement_.get())));
    }

private:
    std::unique_ptr<MYSQL_STMT, decltype(&mysql_stmt_close)> statement_;
};

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

Connection connected(std::uint16_t port, const std::string& database) {
    Connection connection(mysql_init(nullptr), mysql_close);
    const std::string user(tests::server_user_name);
    const std::string password(tests::server_password);
    if (mysql_real_connect(connection.get(), "127.0.0.1", user.c_str(), password.c_str(), database.c_str(), port,
                           nullptr, 0) == nullptr)
        give_up(mysql_error(connection.get()));
    return connection;
}

class MysqlRow final : public Client {
public:
    MysqlRow(std::uint16_t port, const std::string& database) : connection_(connected(port, database)) {}

    int work() override {
        std::string name = fmt::format("{}/{}", own_, count_++);
        insert_.run(name);
        remove_.run(name);
        return 1;
    }

private:
    Connection connection_;
    Statement insert_{connection_.get(),
                      "INSERT INTO lease (name, holder, expires_at) VALUES (?, 'me', 1800000000000)"};
    Statement remove_{connection_.get(), "DELETE FROM lease WHERE name = ? AND holder = 'me'"};
    const std::string own_ = LockId::random().text();
    int count_ = 0;
};

}  // namespace

Clients mysql_rows(std::uint16_t port, const std::string& database, int count) {
    tests::MysqlByHand(port, database)
        .run("CREATE TABLE lease (name VARBINARY(255) PRIMARY KEY, holder TEXT, expires_at BIGINT) ENGINE = InnoDB");
    Clients clients;
    for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<MysqlRow>(port, database));
    return clients;
}

}  // namespace holdfast::bench
