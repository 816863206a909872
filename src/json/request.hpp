#pragma once

#include "holdfast/request.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The requests that a client sends to a daemon. Each has `op` and `name`, and beside them:
///
/// - `acquire`: `lease`, `holder`, `user`, `operation`, `reason`, `ttl_ms`, `max_hold_ms`, `wait_ms`, `ticket_ms`,
///   `unless_held`, `meta`, `take_over` with `lock_id`, `renew_seq` and `stale_after_ms` of a lease that may be stale
/// - `renew`: `lease`, `ttl_ms`, `revive`
/// - `release`, `cancel`: `lease`
/// - `transfer`: `lease`, `to`, `user`, `to_lease`, `reason`
/// - `unlock`, also called `break`: `lock_id` of the lease that was seen, `actor`, `reason`
/// - `expire`: `lock_id` of the lease that was seen to have run out
/// - `check`: `token`, `lock_id`, `unless_held`
/// - `override_request`: `lease`, `holder`, `user`, `reason`, `ttl_ms`, `valid_for_ms`, `wait_ms`
/// - `override_approve`, `override_deny`: `lock_id` of the question, `lease`, `actor`, `reason`, `longest_ttl_ms`,
///   `max_hold_ms`, `break_glass`
/// - `prune`: `through`, `actor`, `reason`
/// - `repair`: `actor`, `reason`
namespace holdfast::json {

/// A request as a client sent it.
struct SentRequest {
    Request request;
    std::optional<std::chrono::milliseconds> wait{};  ///< How long to wait in the queue, or for an answer.
    std::vector<std::string> given{};                 ///< The fields that the client named.

    /// A time that the client left out has the value that the reader was given, and may be set by a policy instead; a
    /// lease that it left out was made up, and has to be told to it.
    [[nodiscard]] bool says(std::string_view field) const { return std::ranges::find(given, field) != given.end(); }
};

/// `{"op":…,"name":…,…}` with every field that has a value. Holds secrets.
[[nodiscard]] Object request(const Request& request, std::optional<std::chrono::milliseconds> wait = std::nullopt);

/// `{"requests":[…]}`. Holds secrets.
[[nodiscard]] Object batch(const std::vector<Request>& requests);

/// Reads a request. `op` is what the address that it was sent to says; empty where the document has to.
///
/// Refused with `usage`, or `name_invalid` for a name, and the path of the field that does not fit. So is a field that
/// the request does not have: passing over a misspelt `unless_held` would grant what was not asked for. `usual` is the
/// time of a lease, and of a question, where the client names none.
[[nodiscard]] Result<SentRequest> read_request(const Node& node, std::string_view op, Ttl usual,
                                               const std::string& where = "");

/// Reads `{"requests":[…]}`. Refused as a whole if one does not fit, or there are more than `most`.
[[nodiscard]] Result<std::vector<SentRequest>> read_batch(const Node& node, Ttl usual, std::size_t most);

}  // namespace holdfast::json
