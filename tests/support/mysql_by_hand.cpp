#include "support/mysql_by_hand.hpp"

#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <mysql.h>
#include <random>
#include <stdexcept>

namespace holdfast::tests {
namespace {

std::string url_of(std::uint16_t port, const std::string& database) {
    return fmt::format("mysql://{}:{}@127.0.0.1:{}/{}", server_user_name, server_password, port, database);
}

}  // namespace

MysqlByHand::MysqlByHand(std::uint16_t port, const std::string& database) : connection_(mysql_init(nullptr)) {
    const std::string user(server_user_name);
    const std::string password(server_password);
    if (mysql_real_connect(connection_, "127.0.0.1", user.c_str(), password.c_str(),
                           database.empty() ? nullptr : database.c_str(), port, nullptr, 0) != nullptr)
        return;
    const std::string why = mysql_error(connection_);
    mysql_close(connection_);
    throw std::runtime_error("cannot connect by hand: " + why);
}

MysqlByHand::~MysqlByHand() { mysql_close(connection_); }

MysqlByHand::Rows MysqlByHand::run(const std::string& sql) {
    if (mysql_real_query(connection_, sql.data(), sql.size()) != 0)
        throw std::runtime_error(fmt::format("{}: {} {}", sql, mysql_errno(connection_), mysql_error(connection_)));
    Rows rows;
    const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> found(mysql_store_result(connection_),
                                                                         mysql_free_result);
    if (!found) return rows;
    const unsigned columns = mysql_num_fields(found.get());
    while (const MYSQL_ROW row = mysql_fetch_row(found.get())) {
        const unsigned long* lengths = mysql_fetch_lengths(found.get());
        auto& fields = rows.emplace_back();
        for (unsigned i = 0; i < columns; ++i)
            fields.push_back(row[i] == nullptr ? "NULL" : std::string(row[i], lengths[i]));
    }
    return rows;
}

std::uint64_t MysqlByHand::affected() const { return mysql_affected_rows(connection_); }

MysqlDatabase::MysqlDatabase(std::uint16_t port)
    : port_(port), name_(fmt::format("hf_{:08x}{:08x}", std::random_device{}(), std::random_device{}())) {
    MysqlByHand(port_).run("CREATE DATABASE " + name_);
}

MysqlDatabase::~MysqlDatabase() {
    try {
        MysqlByHand(port_).run("DROP DATABASE IF EXISTS " + name_);
    } catch (const std::exception&) {
        // Its server is gone, and the database with it.
    }
}

std::string MysqlDatabase::url() const { return url_of(port_, name_); }

std::string hex_literal(const std::string& bytes) {
    std::string text = "x'";
    for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text + "'";
}

}  // namespace holdfast::tests
