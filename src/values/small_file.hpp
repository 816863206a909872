#pragma once

#include <optional>
#include <string>

namespace holdfast {

/// What can be read of a file of the kernel, or of the system's configuration; nothing if it cannot be opened. Without
/// the streams of the standard library: their locales take longer to set up than such a file to read, and they make an
/// exception of a process that ends while it is looked at.
[[nodiscard]] std::optional<std::string> small_file(const std::string& path);

}  // namespace holdfast
