#pragma once

#include "stores/mysql/server_facts.hpp"

#include <vector>

namespace holdfast::stores::mysql {

/// What the promise depends on, one by one.
[[nodiscard]] std::vector<Finding> examine_server(const ServerFacts& facts, const Address& address);

/// Whether the server's clock, which judges, shows what ours shows.
[[nodiscard]] Finding examine_clock(Instant server, const Clock& clock);

}  // namespace holdfast::stores::mysql
