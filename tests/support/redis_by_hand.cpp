#include "support/redis_by_hand.hpp"

#include "support/servers/kinds.hpp"

#include <algorithm>
#include <hiredis/hiredis.h>
#include <stdexcept>

namespace holdfast::tests {
namespace {

using Answer = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

std::string text_of(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
    return reply.str == nullptr ? "" : std::string(reply.str, static_cast<std::size_t>(reply.len));
}

Answer send(redisContext* context, const std::vector<std::string>& command) {
    std::vector<const char*> arguments;
    std::vector<std::size_t> sizes;
    for (const std::string& argument : command) {
        arguments.push_back(argument.data());
        sizes.push_back(argument.size());
    }
    Answer answer(static_cast<redisReply*>(
                      redisCommandArgv(context, static_cast<int>(arguments.size()), arguments.data(), sizes.data())),
                  freeReplyObject);
    if (!answer) throw std::runtime_error("redis: " + std::string(context->errstr));
    if (answer->type == REDIS_REPLY_ERROR) throw std::runtime_error("redis: " + text_of(*answer));
    return answer;
}

}  // namespace

void RedisByHand::Closer::operator()(redisContext* context) const { redisFree(context); }

RedisByHand::RedisByHand(std::uint16_t port) : port_(port), context_(redisConnect("127.0.0.1", port)) {
    if (!context_ || context_->err != 0) throw std::runtime_error("redis: cannot connect");
    ask({"AUTH", std::string(server_password)});
}

RedisByHand::~RedisByHand() = default;

std::string RedisByHand::ask(const std::vector<std::string>& command) {
    return text_of(*send(context_.get(), command));
}

std::vector<std::string> RedisByHand::list(const std::vector<std::string>& command) {
    const Answer answer = send(context_.get(), command);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < static_cast<std::size_t>(answer->elements); ++i)
        found.push_back(text_of(*answer->element[i]));
    return found;
}

std::vector<std::string> RedisByHand::keys(const std::string& prefix) {
    auto found = list({"KEYS", "{" + prefix + "}:*"});
    std::ranges::sort(found);
    return found;
}

}  // namespace holdfast::tests
