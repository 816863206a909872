#pragma once

#include "http.hpp"

#include <filesystem>

namespace cockpit {

/// A file of the pages. A path without an extension is `index.html`: the page reads the path itself.
[[nodiscard]] Response page_at(const std::filesystem::path& folder, const std::string& path);

}  // namespace cockpit
