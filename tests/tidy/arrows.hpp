#pragma once

#include "tidy/source_tree.hpp"

#include <vector>

/// The dependency rule of docs/ARCHITECTURE.md: which folder may include which.
namespace holdfast::tidy {

/// Includes that follow no allowed arrow.
[[nodiscard]] Complaints broken_arrows(const std::vector<SourceFile>& files);

/// Headers of libraries in files that should not know the library.
[[nodiscard]] Complaints escaped_libraries(const std::vector<SourceFile>& files);

}  // namespace holdfast::tidy
