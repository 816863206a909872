#pragma once

#include "stores/mysql/server_facts.hpp"

#include <vector>

namespace holdfast::stores::mysql {

/// One finding for each setting that the promise depends on.
[[nodiscard]] std::vector<Finding> examine_server(const ServerFacts& facts, const Address& address);

/// For a store that exists: whether this user has the rights to use it, and whether the server would accept a change
/// now. Makes a change and rolls it back. `is_marked`: the store is marked as used, so the right to mark it is not
/// needed.
[[nodiscard]] std::vector<Finding> examine_use(Connection& connection, bool is_marked, Deadline deadline);

/// Compares the server's clock, which judges, with ours.
[[nodiscard]] Finding examine_clock(Instant server, const Clock& clock);

}  // namespace holdfast::stores::mysql
