#pragma once

#include "holdfast/error.hpp"
#include "holdfast/store.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"

#include <optional>
#include <string>
#include <string_view>

/// The document for a call that did not succeed.
namespace holdfast::json {

/// `{"error":{…}}`. Without `store` (the call did not reach one) no lock is shown.
[[nodiscard]] Object error(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store);

/// Its inner object: `{"code":…}`.
[[nodiscard]] Object error_body(const Error& error, std::string_view hint, const std::optional<StoreInfo>& store);

/// Reads `{"error":{…}}`; the hint becomes that of the error. Refused with `usage` and the path of the field that does
/// not fit.
[[nodiscard]] Result<Error> read_error(const Node& node, const std::string& where = "");

}  // namespace holdfast::json
