#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

/// The small names and values of `meta` and `details`, as JSON that people and SQL can read.
namespace holdfast::stores::sqlite {

/// One object of strings, keys ascending, without spaces.
[[nodiscard]] std::string to_json(const std::map<std::string, std::string>& map);

/// Empty if `text` is not exactly what `to_json` writes for some map.
[[nodiscard]] std::optional<std::map<std::string, std::string>> from_json(std::string_view text);

}  // namespace holdfast::stores::sqlite
