#pragma once

#include "holdfast/open.hpp"
#include "holdfast/store.hpp"
#include "support/matchers.hpp"
#include "support/redis_by_hand.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>

namespace holdfast::tests {

/// A Redis server of the test's own, and the store in it.
class OwnRedis {
public:
    explicit OwnRedis(std::vector<std::string> arguments = {}, std::vector<std::string> environment = {})
        : server_(start_redis_server({std::move(arguments), std::move(environment)})) {}

    [[nodiscard]] Server& server() { return *server_; }
    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    [[nodiscard]] RedisByHand by_hand() const { return RedisByHand(server_->port()); }
    [[nodiscard]] std::string url(const std::string& parameters = "") const {
        return "redis://:" + std::string(server_password) + "@127.0.0.1:" + std::to_string(server_->port()) + "/0" +
               parameters;
    }
    [[nodiscard]] Result<std::unique_ptr<Store>> open(const std::string& parameters = "") const {
        return open_store(url(parameters));
    }

private:
    std::unique_ptr<Server> server_;
};

/// Where the test runs at its own pace.
[[nodiscard]] inline Deadline within(std::chrono::milliseconds time) { return Deadline::in(host_clock(), time); }
[[nodiscard]] inline Deadline soon() { return within(std::chrono::seconds{20}); }

/// The lock's audit log is whole and ends where its record says.
inline void expect_sound(Store& store, const LockName& name) {
    EXPECT_THAT(verify_chain(must(store.history({.name = name}, soon())), must(store.inspect(name, soon()))),
                Granted());
}

}  // namespace holdfast::tests
