#pragma once

#include <string>

namespace holdfast {

/// The content of a file of the kernel, or of the system's configuration; empty if it cannot be read. Without the
/// streams of the standard library, whose locales take longer to set up than such a file to read.
[[nodiscard]] std::string small_file(const char* path);

}  // namespace holdfast
