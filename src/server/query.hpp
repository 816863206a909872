#pragma once

#include "server/exchange.hpp"
#include "server/services.hpp"

#include <functional>
#include <optional>
#include <string_view>

/// What endpoints that read have in common.
namespace holdfast::server {

using Read = std::move_only_function<Result<HttpReply>(Store& store, Deadline deadline)>;

/// Answers with what `read` makes of the store, on a thread that may block.
void answer_with(Services& services, const ExchangePtr& exchange, Read read);

[[nodiscard]] Result<std::uint64_t> parse_number(std::string_view what, std::string_view text, std::uint64_t most);

// Parameters of a query.
[[nodiscard]] Result<std::uint64_t> number_in(const HttpRequest& request, std::string_view name, std::uint64_t usual,
                                              std::uint64_t most);
[[nodiscard]] Result<bool> switch_in(const HttpRequest& request, std::string_view name);
[[nodiscard]] Result<std::optional<Instant>> time_in(const HttpRequest& request, std::string_view name);
/// The lock that the query names, if the caller may read it.
[[nodiscard]] Result<LockName> name_in(const Exchange& exchange);

}  // namespace holdfast::server
