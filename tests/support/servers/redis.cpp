#include "support/servers/kinds.hpp"

#include <cstdlib>
#include <hiredis/hiredis.h>
#include <stdexcept>

namespace holdfast::tests {
namespace {

bool redis_answers(std::uint16_t port) {
    const std::unique_ptr<redisContext, decltype(&redisFree)> connection(
        redisConnectWithTimeout("127.0.0.1", port, {2, 0}), redisFree);
    if (!connection || connection->err != 0) return false;
    const std::string password(server_password);
    const auto ask = [&](const char* format, const char* argument) {
        const std::unique_ptr<void, decltype(&freeReplyObject)> reply(redisCommand(connection.get(), format, argument),
                                                                      freeReplyObject);
        return reply && static_cast<redisReply*>(reply.get())->type == REDIS_REPLY_STATUS;
    };
    // It answers PING with an error while it reads its data.
    return ask("AUTH %s", password.c_str()) && ask("PING", "");
}

/// Returns when the cluster of one works.
void take_all_slots(std::uint16_t port) {
    const std::unique_ptr<redisContext, decltype(&redisFree)> connection(
        redisConnectWithTimeout("127.0.0.1", port, {2, 0}), redisFree);
    const std::string password(server_password);
    const auto ask = [&](const std::string& command) {
        const std::unique_ptr<void, decltype(&freeReplyObject)> reply(redisCommand(connection.get(), command.c_str()),
                                                                      freeReplyObject);
        if (!reply) throw std::runtime_error("a node of a cluster does not answer");
        const auto* answer = static_cast<redisReply*>(reply.get());
        return answer->str == nullptr ? std::string() : std::string(answer->str, answer->len);
    };
    ask("AUTH " + password);
    ask("CLUSTER ADDSLOTSRANGE 0 16383");
    while (ask("CLUSTER INFO").find("cluster_state:ok") == std::string::npos) {
    }
}

}  // namespace

std::unique_ptr<Server> start_redis_server(const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const std::uint16_t port = free_port();
    Server::Plan plan{
        .name = "redis",
        .command = {server_program("redis", "/usr/bin", "redis-server"), "--port", std::to_string(port), "--bind",
                    "127.0.0.1", "--dir", folder->path().string(), "--requirepass", std::string(server_password),
                    "--save", "", "--appendonly", "yes", "--appendfsync", "always"},
        .environment = options.environment,
        .is_ready = [port] { return redis_answers(port); }};
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    if (std::getenv("HOLDFAST_SERVER_CLUSTER") == nullptr)
        return std::make_unique<Server>(std::move(plan), std::move(folder), port);
    // A port for the nodes among themselves: by default it is ten thousand higher, which is more than there are.
    plan.command.insert(plan.command.end(),
                        {"--cluster-enabled", "yes", "--cluster-port", std::to_string(free_port())});
    auto server = std::make_unique<Server>(std::move(plan), std::move(folder), port);
    take_all_slots(port);
    return server;
}

}  // namespace holdfast::tests
