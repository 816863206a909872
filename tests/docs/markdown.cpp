#include "docs/markdown.hpp"

#include <algorithm>
#include <array>
#include <regex>

namespace holdfast::docs {
namespace {

constexpr std::array shown_languages{"text", "json", "toml", "sql", "cpp", "cmake"};
constexpr std::string_view no_run = "sh no-run:";
constexpr std::string_view quoted = "cpp from";

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The length of the fence that opens or closes a block; 0 for any other line.
std::size_t fence_of(std::string_view line) {
    const auto length = std::min(line.find_first_not_of('`'), line.size());
    return length >= 3 ? length : 0;
}

std::vector<std::string> without_indentation(std::vector<std::string> lines) {
    std::size_t common = std::string::npos;
    for (const std::string& line : lines) common = std::min(common, line.find_first_not_of(' '));
    for (std::string& line : lines) line.erase(0, std::min(common, line.size()));
    return lines;
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const auto end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::optional<std::vector<Block>> blocks_of(std::string_view page) {
    std::vector<Block> blocks;
    std::size_t open = 0;  // The fence's length while inside a block.
    std::size_t number = 0;
    for (const std::string& line : lines_of(page)) {
        ++number;
        const std::size_t fence = fence_of(line);
        if (open == 0 && fence > 0) {
            open = fence;
            blocks.push_back({number, std::string(trimmed(std::string_view(line).substr(fence))), {}});
        } else if (open > 0 && fence >= open && trimmed(std::string_view(line).substr(fence)).empty()) {
            open = 0;
        } else if (open > 0) {
            blocks.back().lines.push_back(line);
        }
    }
    if (open > 0) return std::nullopt;
    return blocks;
}

Marking marking_of(std::string_view info) {
    if (info == "sh") return Marking::run_script;
    if (info == "console") return Marking::run_session;
    // Without a reason or a path there is nothing to print or to compare, so the marking means nothing.
    if (info.starts_with(no_run) && !argument_of(info).empty()) return Marking::not_run;
    if (info.starts_with(quoted) && !argument_of(info).empty()) return Marking::quoted_code;
    return std::ranges::find(shown_languages, info) == shown_languages.end() ? Marking::unknown : Marking::only_shown;
}

std::string argument_of(std::string_view info) {
    for (const std::string_view prefix : {no_run, quoted})
        if (info.starts_with(prefix)) return std::string(trimmed(info.substr(prefix.size())));
    return {};
}

std::vector<std::string> links_of(std::string_view page) {
    static const std::regex link(R"(\]\(([^)\s#]+)[^)]*\))");
    static const std::regex code(R"(`[^`]*`)");
    std::vector<std::string> links;
    std::size_t open = 0;
    for (const std::string& line : lines_of(page)) {
        const std::size_t fence = fence_of(line);
        if (fence > 0 && (open == 0 || fence >= open)) open = open == 0 ? fence : 0;
        if (open > 0) continue;
        const std::string prose = std::regex_replace(line, code, "");
        for (std::sregex_iterator found(prose.begin(), prose.end(), link), end; found != end; ++found)
            if ((*found)[1].str().find("://") == std::string::npos) links.push_back((*found)[1]);
    }
    return links;
}

bool is_part_of(const std::vector<std::string>& lines, std::string_view file) {
    const std::vector<std::string> wanted = without_indentation(lines);
    const std::vector<std::string> all = lines_of(file);
    if (wanted.empty() || wanted.size() > all.size()) return false;
    for (std::size_t start = 0; start + wanted.size() <= all.size(); ++start) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(start);
        if (without_indentation({first, first + static_cast<std::ptrdiff_t>(wanted.size())}) == wanted) return true;
    }
    return false;
}

}  // namespace holdfast::docs
