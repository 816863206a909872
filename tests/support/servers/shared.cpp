#include "support/servers/kinds.hpp"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>

namespace holdfast::tests {

std::string server_program(std::string_view kind, std::string_view usual, std::string_view name) {
    std::string variable = "HOLDFAST_SERVER_";
    for (const char letter : kind) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    const char* const folder = std::getenv(variable.c_str());
    return std::string(folder != nullptr ? std::string_view(folder) : usual) + "/" + std::string(name);
}

std::vector<std::string> server_kinds() { return {"postgres", "mysql", "redis", "etcd"}; }

std::unique_ptr<Server> start_server(std::string_view kind, const ServerOptions& options) {
    if (kind == "postgres") return start_postgres_server(options);
    if (kind == "mysql") return start_mariadb_server(options);
    if (kind == "redis") return start_redis_server(options);
    if (kind == "etcd") return start_etcd_server(options);
    if (kind == "http") return start_daemon("", options);
    throw std::logic_error("there is no server for " + std::string(kind));
}

std::uint16_t shared_server_port(std::string_view kind) {
    static std::mutex mutex;
    static std::map<std::string, std::unique_ptr<Server>, std::less<>> own;
    const std::scoped_lock lock(mutex);
    if (const char* folder = std::getenv("HOLDFAST_TEST_SERVERS")) {
        std::uint16_t port = 0;
        if (std::ifstream(std::string(folder) + "/" + std::string(kind)) >> port) return port;
        throw std::runtime_error("no " + std::string(kind) + " was started for this test run, see " + folder);
    }
    const auto found = own.find(kind);
    if (found != own.end()) return found->second->port();
    return own.emplace(kind, start_server(kind)).first->second->port();
}

}  // namespace holdfast::tests
