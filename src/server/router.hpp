#pragma once

#include "server/exchange.hpp"
#include "server/services.hpp"

#include <span>
#include <string_view>

namespace holdfast::server {

/// One parameter of a query.
struct Parameter {
    std::string_view name;
    std::string_view meaning;
    bool is_required = false;
    std::string_view type = "string";  ///< As in JSON Schema.
};

/// One endpoint, as data: the router and the OpenAPI document are made from it.
struct Route {
    std::string_view method;
    std::string_view path;  ///< Exactly, or with `*` at its end: everything that begins so.
    /// What a caller must be at least, for some lock. What it may do with which is checked where the lock is known.
    /// `nobody`: also without any proof of who calls.
    Role needs;
    void (*handle)(Services& services, const ExchangePtr& exchange);
    std::string_view summary;
    std::string_view body{};   ///< The schema of the request, in the OpenAPI document.
    std::string_view reply{};  ///< The schema of the answer with status 200.
    std::span<const Parameter> parameters{};
};

/// The only list of endpoints.
[[nodiscard]] std::span<const Route> routes();

/// Answers, or refuses, one request. On the loop's thread.
void dispatch(Services& services, const ExchangePtr& exchange);

}  // namespace holdfast::server
