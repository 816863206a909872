#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::server {

struct HttpRequest {
    using Fields = std::vector<std::pair<std::string, std::string>>;

    std::string method{};  ///< In capitals.
    std::string path{};    ///< As it was sent, without the query.
    Fields query{};        ///< Decoded.
    Fields headers{};      ///< The names in lower case.
    std::string body{};
    std::string peer{};  ///< The client's address, without its port.
    bool is_tls = false;

    /// The first header of that name, given in lower case.
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
    [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

struct HttpReply {
    int status = 200;
    std::string content_type = "application/json";
    std::string body{};
    HttpRequest::Fields headers{};
};

/// Takes a request's target apart. Refused with `usage`: a percent sign without two digits, or decoded bytes that are
/// not UTF-8.
[[nodiscard]] Result<void> split_target(std::string_view target, HttpRequest& into);

/// `Bad Request`
[[nodiscard]] std::string_view reason_of(int status);

/// `{"error":…}` with the status of its code.
[[nodiscard]] HttpReply reply_with(const Error& error);
/// The same with another status.
[[nodiscard]] HttpReply reply_with(const Error& error, int status);

}  // namespace holdfast::server
