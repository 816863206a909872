#pragma once

#include <string>
#include <string_view>

namespace holdfast {

/// UTF-8 `text` with all control characters, and all that are invisible or change the direction of the text, as
/// `\u001b`, `\u202e`: for JSON, where that is the same text.
[[nodiscard]] std::string with_unicode_escapes(std::string_view text);

}  // namespace holdfast
