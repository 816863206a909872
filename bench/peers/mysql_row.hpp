#pragma once

#include "harness/clients.hpp"

#include <cstdint>

namespace holdfast::bench {

/// What a program would write that keeps its leases in MariaDB by itself: one row, two statements that commit by
/// themselves, prepared once. Each client has a connection.
[[nodiscard]] Clients mysql_rows(std::uint16_t port, const std::string& database, int count);

}  // namespace holdfast::bench
