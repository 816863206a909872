#pragma once

#include "holdfast/store.hpp"
#include "stores/http/server.hpp"

#include <functional>
#include <span>
#include <vector>

namespace holdfast::stores::http {

/// What reads show: see `StoreProperties::shows_only_durable`.
enum class Sees { only_durable, anything };

/// As `Store::apply`. `seen` is called with each document of replies.
[[nodiscard]] Result<std::vector<Reply>> apply_batch(Server& server, std::span<const Request> requests,
                                                     const std::optional<StoreId>& store_id, Sees sees,
                                                     const base::CallBudget& budget,
                                                     const std::function<void(const json::Node&)>& seen);

}  // namespace holdfast::stores::http
