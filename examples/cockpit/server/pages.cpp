#include "pages.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string_view>

namespace cockpit {
namespace {

struct Kind {
    std::string_view extension;
    const char* content_type;
};

constexpr std::array kinds{Kind{".html", "text/html; charset=utf-8"}, Kind{".js", "text/javascript; charset=utf-8"},
                           Kind{".css", "text/css; charset=utf-8"}, Kind{".svg", "image/svg+xml"}};

/// The pages are a flat folder, so a name has no slash and reaches nothing else.
bool is_name_of_file(std::string_view name) {
    return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    });
}

}  // namespace

Response page_at(const std::filesystem::path& folder, const std::string& path) {
    const std::filesystem::path asked(path);
    const std::string name = asked.has_extension() ? path.substr(1) : "index.html";
    const auto kind = std::ranges::find(kinds, std::filesystem::path(name).extension().string(), &Kind::extension);
    std::ifstream file;
    if (is_name_of_file(name) && kind != kinds.end()) file.open(folder / name, std::ios::binary);
    if (!file.is_open())
        return {.status = 404, .content_type = "text/plain; charset=utf-8", .body = "There is no such page.\n"};
    return {.content_type = kind->content_type, .body = {std::istreambuf_iterator<char>(file), {}}};
}

}  // namespace cockpit
