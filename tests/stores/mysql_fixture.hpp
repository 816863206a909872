#pragma once

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>

namespace holdfast::tests {

/// A database on a test server, a store in it that goes by the real clocks, and a SQL shell beside it.
class MysqlPlace {
public:
    explicit MysqlPlace(std::uint16_t port) : database(port), shell(port, database.name()) {}

    [[nodiscard]] std::unique_ptr<Store> open(const std::string& parameters = "") const {
        return must(open_store(database.url() + parameters));
    }
    [[nodiscard]] static Deadline soon() { return Deadline::in(host_clock(), std::chrono::seconds{30}); }

    MysqlDatabase database;
    MysqlByHand shell;
};

}  // namespace holdfast::tests
