#pragma once

#include "holdfast/error.hpp"
#include "holdfast/sql.hpp"
#include "http.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Documents in and out: what handlers read from a request, and the answers that they share.
namespace cockpit {

[[nodiscard]] Response reply(const boost::json::object& document, int status = 200);
/// With the status that the daemon has for this error.
[[nodiscard]] Response reply(const holdfast::Error& error);
[[nodiscard]] Response denied(const std::string& message, int status = 403);
[[nodiscard]] Response not_found();

/// No body is an empty object. Anything else that is no object is refused: taken for an empty one, it would keep an
/// empty text in the place of what somebody typed.
[[nodiscard]] holdfast::Result<boost::json::object> object_in(const std::string& body);
[[nodiscard]] std::string text_in(const boost::json::object& document, std::string_view key);
[[nodiscard]] std::int64_t number_in(const boost::json::object& document, std::string_view key, std::int64_t otherwise);
/// Whether it is there, and true.
[[nodiscard]] bool is_in(const boost::json::object& document, std::string_view key);
[[nodiscard]] std::int64_t number_of(const holdfast::SqlCell& cell);

}  // namespace cockpit
