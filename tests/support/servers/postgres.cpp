#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <libpq-fe.h>

namespace holdfast::tests {
namespace {

constexpr std::string_view programs = "/usr/lib/postgresql/15/bin/";

bool postgres_answers(std::uint16_t port) {
    return PQping(fmt::format("host=127.0.0.1 port={} dbname=postgres connect_timeout=2", port).c_str()) == PQPING_OK;
}

}  // namespace

std::unique_ptr<Server> start_postgres_server(const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const std::string data = (folder->path() / "data").string();
    const std::string password = folder->write("password", std::string(server_password));
    run_as_server({fmt::format("{}initdb", programs), "--pgdata", data, "--username", std::string(server_user_name),
                   "--auth", "scram-sha-256", "--pwfile", password, "--encoding", "UTF8", "--locale", "C",
                   "--no-instructions", "--no-sync"});
    const std::uint16_t port = free_port();
    // No test cuts the power, so a server that was killed need not sync each of its files when it comes back.
    Server::Plan plan{.name = "postgres",
                      .command = {fmt::format("{}postgres", programs), "-D", data, "-p", std::to_string(port), "-h",
                                  "127.0.0.1", "-k", folder->path().string(), "-c", "max_connections=300", "-c",
                                  "shared_buffers=64MB", "-c", "recovery_init_sync_method=syncfs"},
                      .environment = options.environment,
                      .is_ready = [port] { return postgres_answers(port); }};
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    return std::make_unique<Server>(std::move(plan), std::move(folder), port);
}

std::unique_ptr<Server> start_pgbouncer(const Server& postgres) {
    auto folder = std::make_shared<ServerFolder>();
    const std::uint16_t port = free_port();
    const std::string users =
        folder->write("users.txt", fmt::format("\"{}\" \"{}\"\n", server_user_name, server_password));
    const std::string settings = folder->write(
        "pgbouncer.ini",
        fmt::format("[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n"
                    "unix_socket_dir =\nauth_type = plain\nauth_file = {}\npool_mode = transaction\n"
                    "default_pool_size = 4\nmax_client_conn = 500\nignore_startup_parameters = extra_float_digits\n",
                    postgres.port(), port, users));
    return std::make_unique<Server>(Server::Plan{.name = "pgbouncer",
                                                 .command = {"/usr/sbin/pgbouncer", settings},
                                                 .is_ready = [port] { return postgres_answers(port); }},
                                    std::move(folder), port);
}

}  // namespace holdfast::tests
