#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <mysql.h>

namespace holdfast::tests {
namespace {

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

bool mariadb_answers(std::uint16_t port) {
    const Connection connection(mysql_init(nullptr), mysql_close);
    const std::string user(server_user_name);
    const std::string password(server_password);
    return mysql_real_connect(connection.get(), "127.0.0.1", user.c_str(), password.c_str(), nullptr, port, nullptr,
                              0) != nullptr;
}

}  // namespace

std::unique_ptr<Server> start_mariadb_server(const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const std::string data = (folder->path() / "data").string();
    // A server that starts removes what it takes for its own temporary tables, also those of another in the same place.
    const std::string temporary = "--tmpdir=" + folder->path().string();
    const std::string mysql = server_program("mysql", "", "mysqld");
    const bool is_mysql = std::filesystem::exists(mysql);
    // Debian's MySQL looks for its messages below /usr, where this one is not.
    const std::string messages =
        "--lc-messages-dir=" + (std::filesystem::path(mysql).parent_path() / "../usr/share/mysql").string();
    if (is_mysql)
        run_as_server({mysql, "--no-defaults", "--initialize-insecure", "--datadir=" + data, temporary, messages,
                       "--secure-file-priv="});
    else
        run_as_server({"/usr/bin/mariadb-install-db", "--no-defaults", "--datadir=" + data, temporary, "--skip-test-db",
                       "--auth-root-authentication-method=normal", "--skip-name-resolve"});
    const std::string first =
        folder->write("first.sql", fmt::format("CREATE USER IF NOT EXISTS {0}@'127.0.0.1' IDENTIFIED BY '{1}';\n"
                                               "GRANT ALL ON *.* TO {0}@'127.0.0.1' WITH GRANT OPTION;\n",
                                               server_user_name, server_password));
    const std::uint16_t port = free_port();
    Server::Plan plan{.name = "mariadb",
                      .command = {is_mysql ? mysql : "/usr/sbin/mariadbd", "--no-defaults", "--datadir=" + data,
                                  "--port=" + std::to_string(port), "--bind-address=127.0.0.1", temporary,
                                  "--socket=" + (folder->path() / "socket").string(),
                                  "--pid-file=" + (folder->path() / "pid").string(), "--init-file=" + first,
                                  "--skip-name-resolve", "--max-connections=300", "--innodb-buffer-pool-size=64M"},
                      .environment = options.environment,
                      .is_ready = [port] { return mariadb_answers(port); }};
    if (is_mysql) plan.command.insert(plan.command.end(), {messages, "--mysqlx=OFF", "--secure-file-priv="});
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    return std::make_unique<Server>(std::move(plan), std::move(folder), port);
}

}  // namespace holdfast::tests
