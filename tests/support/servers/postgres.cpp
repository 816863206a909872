#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <libpq-fe.h>
#include <stdexcept>

namespace holdfast::tests {
namespace {

std::string program(std::string_view name) { return server_program("postgres", "/usr/lib/postgresql/15/bin", name); }

bool postgres_answers(std::uint16_t port) {
    return PQping(fmt::format("host=127.0.0.1 port={} dbname=postgres connect_timeout=2", port).c_str()) == PQPING_OK;
}

std::unique_ptr<Server> start_in(std::shared_ptr<ServerFolder> folder, const ServerOptions& options) {
    const std::string data = (folder->path() / "data").string();
    const std::uint16_t port = free_port();
    Server::Plan plan{.name = "postgres",
                      .command = {program("postgres"), "-D", data, "-p", std::to_string(port), "-h", "127.0.0.1", "-k",
                                  folder->path().string(), "-c", "max_connections=300", "-c", "shared_buffers=64MB"},
                      .environment = options.environment,
                      .is_ready = [port] { return postgres_answers(port); }};
    // No test cuts the power, so a server that was killed need not sync each of its files when it comes back.
    // PostgreSQL 13 does not know the setting, so only that of the system has it.
    if (program("postgres").starts_with("/usr/lib/"))
        plan.command.insert(plan.command.end(), {"-c", "recovery_init_sync_method=syncfs"});
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    return std::make_unique<Server>(std::move(plan), std::move(folder), port);
}

void promote(const Server& standby) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
        PQconnectdb(fmt::format("host=127.0.0.1 port={} dbname=postgres user={} password={}", standby.port(),
                                server_user_name, server_password)
                        .c_str()),
        PQfinish);
    const std::unique_ptr<PGresult, decltype(&PQclear)> done(PQexec(connection.get(), "SELECT pg_promote()"), PQclear);
    if (PQresultStatus(done.get()) != PGRES_TUPLES_OK || std::string_view(PQgetvalue(done.get(), 0, 0)) != "t")
        throw std::runtime_error("the standby cannot be promoted");
}

}  // namespace

std::unique_ptr<Server> start_postgres_standby_from_files(Server& primary) {
    auto folder = std::make_shared<ServerFolder>();
    const auto data = folder->path() / "data";
    primary.kill();
    run_as_server({"/bin/cp", "-a", (primary.folder().path() / "data").string(), data.string()});
    run_as_server({"/bin/rm", "-f", (data / "postmaster.pid").string()});
    run_as_server({"/bin/touch", (data / "standby.signal").string()});
    primary.start();
    return start_in(std::move(folder),
                    {{"-c", fmt::format("primary_conninfo=host=127.0.0.1 port={} user={} password={}", primary.port(),
                                        server_user_name, server_password)},
                     {}});
}

std::unique_ptr<Server> start_postgres_standby(const Server& primary) {
    auto folder = std::make_shared<ServerFolder>();
    run_as_server(
        {program("pg_basebackup"), "--dbname",
         fmt::format("postgresql://{}:{}@127.0.0.1:{}/postgres", server_user_name, server_password, primary.port()),
         "--pgdata", (folder->path() / "data").string(), "--write-recovery-conf", "--no-sync", "--checkpoint", "fast"});
    return start_in(std::move(folder), {});
}

std::unique_ptr<Server> start_postgres_server(const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const std::string data = (folder->path() / "data").string();
    const std::string password = folder->write("password", std::string(server_password));
    run_as_server({program("initdb"), "--pgdata", data, "--username", std::string(server_user_name), "--auth",
                   "scram-sha-256", "--pwfile", password, "--encoding", "UTF8", "--locale", "C", "--no-sync"});
    auto server = start_in(std::move(folder), options);
    if (std::getenv("HOLDFAST_SERVER_PROMOTED") == nullptr) return server;
    auto standby = start_postgres_standby_from_files(*server);
    server->kill();
    promote(*standby);
    return standby;
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
