#pragma once

#include "stores/mysql/server_facts.hpp"

#include <vector>

namespace holdfast::stores::mysql {

/// What the promise depends on, one by one.
[[nodiscard]] std::vector<Finding> examine_server(const ServerFacts& facts, const Address& address);

/// Of a store that is there: whether this user has the rights to use it, and whether the server would take a change
/// now. Makes one, and takes it back. A store that `is_marked` as used needs no right to be.
[[nodiscard]] std::vector<Finding> examine_use(Connection& connection, bool is_marked, Deadline deadline);

/// Whether the server's clock, which judges, shows what ours shows.
[[nodiscard]] Finding examine_clock(Instant server, const Clock& clock);

}  // namespace holdfast::stores::mysql
