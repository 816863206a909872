#include "support/server_place.hpp"

#include "support/mysql_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <random>

namespace holdfast::tests {
namespace {

std::string random_name() {
    std::random_device random;
    return fmt::format("t{:08x}{:08x}", random(), random());
}

}  // namespace

ServerPlace::ServerPlace(std::string kind, std::uint16_t port, std::string name)
    : kind_(std::move(kind)), port_(port), name_(std::move(name)) {
    if (kind_ == "mysql") MysqlByHand(port_).run("CREATE DATABASE IF NOT EXISTS " + name_);
}

ServerPlace::ServerPlace(std::string kind, std::uint16_t port) : ServerPlace(std::move(kind), port, random_name()) {}

std::string ServerPlace::url(std::uint16_t port) const {
    const std::string user = fmt::format("{}:{}@", server_user_name, server_password);
    if (kind_ == "postgres") return fmt::format("postgres://{}127.0.0.1:{}/postgres?schema={}", user, port, name_);
    if (kind_ == "mysql") return fmt::format("mysql://{}127.0.0.1:{}/{}", user, port, name_);
    if (kind_ == "redis") return fmt::format("redis://:{}@127.0.0.1:{}/0?prefix={}", server_password, port, name_);
    if (kind_ == "http") return fmt::format("http://127.0.0.1:{}", port);
    // Without a margin between the clocks of nodes, of which there is one, a lease ends as it does elsewhere.
    return fmt::format("etcd://127.0.0.1:{}/{}?clock_margin=0s", port, name_);
}

}  // namespace holdfast::tests
