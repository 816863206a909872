#pragma once

#include "server/http.hpp"
#include "server/serve.hpp"

#include <optional>
#include <string_view>

namespace holdfast::server {

/// `127.0.0.1:7420` -> `127.0.0.1`; `[::1]:7420` -> `::1`.
[[nodiscard]] std::string_view host_of(std::string_view address);

/// Keeps pages of other origins out, also on the loopback, where a browser can reach the daemon for any page: by the
/// name that the client called, by the header Origin, and by what browsers say of a request. Absent if it may pass.
[[nodiscard]] std::optional<HttpReply> refused_origin(const HttpRequest& request, const ServeOptions& options);

}  // namespace holdfast::server
