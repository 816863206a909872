#pragma once

#include <optional>
#include <string>
#include <string_view>

/// How keys and values travel in etcd's JSON: base64 with padding.
namespace holdfast::stores::etcd {

void append_base64(std::string& out, std::string_view bytes);

/// Empty if the text is not base64.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace holdfast::stores::etcd
