#pragma once

#include <string_view>

/// The version of these headers, for `#if`. Before 1.0 a minor version may change the interface; a patch version does
/// not.
#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0
/// One number, for comparisons: 0.1.0 is 100.
#define HOLDFAST_VERSION_NUMBER (HOLDFAST_VERSION_MAJOR * 10000 + HOLDFAST_VERSION_MINOR * 100 + HOLDFAST_VERSION_PATCH)

namespace [[gnu::visibility("default")]] holdfast {

/// The version of the library that runs: that of the headers, or with a shared library a later patch version.
[[nodiscard]] std::string_view library_version();

}  // namespace holdfast
