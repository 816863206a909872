#include "tidy/source_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

namespace holdfast::tidy {

namespace fs = std::filesystem;

fs::path project_root() { return HOLDFAST_SOURCE_DIR; }

SourceFile made_up(std::string path, std::string_view text) {
    SourceFile file{std::move(path), {}};
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        file.lines.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return file;
}

SourceFile read_source(const std::string& path) {
    std::ifstream stream(project_root() / path, std::ios::binary);
    if (!stream) throw std::runtime_error("cannot read " + path);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    return made_up(path, text);
}

std::vector<SourceFile> sources_below(std::initializer_list<std::string_view> folders,
                                      std::initializer_list<std::string_view> endings) {
    std::vector<SourceFile> files;
    for (const std::string_view folder : folders) {
        if (!fs::is_directory(project_root() / folder)) continue;
        for (const auto& entry : fs::recursive_directory_iterator(project_root() / folder)) {
            const std::string path = fs::relative(entry.path(), project_root()).string();
            const auto ends_so = [&](std::string_view ending) { return path.ends_with(ending); };
            if (entry.is_regular_file() && std::ranges::any_of(endings, ends_so)) files.push_back(read_source(path));
        }
    }
    std::ranges::sort(files, {}, &SourceFile::path);
    return files;
}

std::vector<Include> includes_of(const SourceFile& file) {
    static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
    std::vector<Include> found;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        std::smatch match;
        if (std::regex_search(file.lines[i], match, pattern)) found.push_back({match[2], match[1] == "\"", i + 1});
    }
    return found;
}

std::string place(const SourceFile& file, std::size_t line) { return fmt::format("{}:{}", file.path, line); }

}  // namespace holdfast::tidy
