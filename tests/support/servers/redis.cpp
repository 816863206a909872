#include "support/servers/kinds.hpp"

#include <hiredis/hiredis.h>

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

}  // namespace

std::unique_ptr<Server> start_redis_server(const ServerOptions& options) {
    auto folder = std::make_shared<ServerFolder>();
    const std::uint16_t port = free_port();
    Server::Plan plan{.name = "redis",
                      .command = {"/usr/bin/redis-server", "--port", std::to_string(port), "--bind", "127.0.0.1",
                                  "--dir", folder->path().string(), "--requirepass", std::string(server_password),
                                  "--save", "", "--appendonly", "yes", "--appendfsync", "always"},
                      .environment = options.environment,
                      .is_ready = [port] { return redis_answers(port); }};
    plan.command.insert(plan.command.end(), options.arguments.begin(), options.arguments.end());
    return std::make_unique<Server>(std::move(plan), std::move(folder), port);
}

}  // namespace holdfast::tests
