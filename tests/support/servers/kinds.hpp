#pragma once

#include "support/servers/server.hpp"

#include <array>
#include <string_view>

/// The real servers, each as a store needs it. All of them listen on loopback only.
namespace holdfast::tests {

/// Of every user that these servers know. A test looks for it where no password may be.
inline constexpr std::string_view server_password = "canary-7f3a91";
inline constexpr std::string_view server_user_name = "holdfast";

/// What a test may want differently.
struct ServerOptions {
    std::vector<std::string> arguments{};    ///< Added to the command.
    std::vector<std::string> environment{};  ///< `NAME=value`; how a clock shim gets in.
};

/// Where a program of a server is: in the folder that HOLDFAST_SERVER_POSTGRES, _MYSQL, _REDIS or _ETCD names, for
/// another version than that of the system, or in `usual`.
[[nodiscard]] std::string server_program(std::string_view kind, std::string_view usual, std::string_view name);

/// With HOLDFAST_SERVER_PROMOTED in the environment one that was a standby, and was promoted when its primary was
/// killed.
[[nodiscard]] std::unique_ptr<Server> start_postgres_server(const ServerOptions& options = {});
/// A hot standby, by pg_basebackup, which follows `primary` by streaming.
[[nodiscard]] std::unique_ptr<Server> start_postgres_standby(const Server& primary);
/// The same from a copy of its files, for which it is killed and started again. Packages of other versions have no
/// pg_basebackup.
[[nodiscard]] std::unique_ptr<Server> start_postgres_standby_from_files(Server& primary);
/// MariaDB, or MySQL where that is what HOLDFAST_SERVER_MYSQL has.
[[nodiscard]] std::unique_ptr<Server> start_mariadb_server(const ServerOptions& options = {});
/// With HOLDFAST_SERVER_CLUSTER in the environment the one node of a cluster.
[[nodiscard]] std::unique_ptr<Server> start_redis_server(const ServerOptions& options = {});
[[nodiscard]] std::unique_ptr<Server> start_etcd_server(const ServerOptions& options = {});

/// `holdfast serve` on `store`; on a SQLite store in its own folder if that is empty. Whoever calls it needs the
/// program: `add_dependencies(… holdfast)`.
[[nodiscard]] std::unique_ptr<Server> start_daemon(const std::string& store = "", const ServerOptions& options = {});

/// The schemes of the stores that live in a server.
[[nodiscard]] std::vector<std::string> server_kinds();
/// Starts the server of one of them, or with `http` a daemon.
[[nodiscard]] std::unique_ptr<Server> start_server(std::string_view kind, const ServerOptions& options = {});

/// A cluster of three. Nodes can be killed, stopped and started one by one. `in_front` is given the port where a node
/// listens for the other two, and says where they shall look for it: at a proxy.
[[nodiscard]] std::array<std::unique_ptr<Server>, 3> start_etcd_cluster(
    const std::function<std::uint16_t(std::uint16_t)>& in_front = {});

/// In front of a PostgreSQL, in transaction pooling mode.
[[nodiscard]] std::unique_ptr<Server> start_pgbouncer(const Server& postgres);

/// The port of the server that the whole test run shares. It is started with the run (see `keeper.cpp`); a
/// program that is run by hand starts its own. `kind` is the scheme of the store's URLs.
[[nodiscard]] std::uint16_t shared_server_port(std::string_view kind);

}  // namespace holdfast::tests
