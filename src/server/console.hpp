#pragma once

#include <span>
#include <string_view>

namespace holdfast::server {

/// One file of the console, as the browser gets it.
struct Asset {
    std::string_view path;  ///< `/index.html`
    std::string_view content_type;
    std::string_view content;
};

/// All of them. Made from files when the program is built: see embed_console.cmake.
[[nodiscard]] std::span<const Asset> console_assets();

}  // namespace holdfast::server
