#pragma once

#include <string>
#include <string_view>

namespace holdfast {

/// Escapes all control characters of UTF-8 `text`, and all that are invisible or change the direction of text, as
/// `\u001b`, `\u202e`. For JSON, where the escaped text has the same value.
[[nodiscard]] std::string with_unicode_escapes(std::string_view text);

}  // namespace holdfast
