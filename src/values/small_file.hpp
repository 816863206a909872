#pragma once

#include <optional>
#include <string>

namespace holdfast {

/// Reads a file of the kernel or of the system's configuration, as far as it can be read; empty if it cannot be opened.
/// Without the streams of the standard library: setting up their locales takes longer than reading such a file, and
/// they throw if a process ends while its file is read.
[[nodiscard]] std::optional<std::string> small_file(const std::string& path);

}  // namespace holdfast
