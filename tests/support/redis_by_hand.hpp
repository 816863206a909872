#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct redisContext;

namespace holdfast::tests {

/// A Redis server as somebody with redis-cli sees it. Throws where the server says an error.
class RedisByHand {
public:
    explicit RedisByHand(std::uint16_t port);
    RedisByHand(const RedisByHand&) = delete;
    RedisByHand& operator=(const RedisByHand&) = delete;
    ~RedisByHand();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// The answer as text: numbers in digits, nothing as "".
    std::string ask(const std::vector<std::string>& command);
    /// The answer as a list.
    std::vector<std::string> list(const std::vector<std::string>& command);
    /// All keys of a store, sorted.
    std::vector<std::string> keys(const std::string& prefix);

private:
    struct Closer {
        void operator()(redisContext* context) const;
    };
    std::uint16_t port_;
    std::unique_ptr<redisContext, Closer> context_;
};

}  // namespace holdfast::tests
