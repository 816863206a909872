#pragma once

#include <string>
#include <string_view>

namespace holdfast::guards::fence {

/// `text` as a literal of PostgreSQL, where standard_conforming_strings is on.
[[nodiscard]] std::string literal(std::string_view text);

/// The body of a function between dollar quotes. The name of a schema may be in it, and may look like such a quote.
[[nodiscard]] std::string dollar_quoted(std::string_view body);

}  // namespace holdfast::guards::fence
