#pragma once

#include "json/store.hpp"
#include "stores/http/server.hpp"

#include <vector>

namespace holdfast::stores::http {

/// What the daemon says of its store.
[[nodiscard]] Result<json::ReadStore> read_store(Server& server, const base::CallBudget& budget);

/// The way to the daemon, and what the daemon finds when it examines its store.
[[nodiscard]] std::vector<Finding> examine_daemon(Server& server, const base::CallBudget& budget);

}  // namespace holdfast::stores::http
