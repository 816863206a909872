#include "tidy/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <regex>

namespace holdfast::tidy {
namespace {

template <class Test>
Complaints lines_that(const std::vector<SourceFile>& files, std::string_view complaint, Test is_wrong) {
    Complaints complaints;
    for (const SourceFile& file : files)
        for (std::size_t i = 0; i < file.lines.size(); ++i)
            if (is_wrong(file.lines[i])) complaints.push_back(fmt::format("{}: {}", place(file, i + 1), complaint));
    return complaints;
}

/// A word such as `file_${part}_test.cpp`, from a loop, names every file that it could become.
bool names(const SourceFile& cmake_file, const std::string& file_name) {
    static const std::regex separators("[\\s()\"/]+");
    static const std::regex variable("\\$\\{[^}]*\\}");
    for (const std::string& line : cmake_file.lines) {
        const std::sregex_token_iterator words(line.begin(), line.end(), separators, -1);
        for (auto word = words; word != std::sregex_token_iterator(); ++word) {
            if (*word == file_name) return true;
            if (!word->str().ends_with(".cpp") || word->str().find('$') == std::string::npos) continue;
            if (std::regex_match(file_name, std::regex(std::regex_replace(word->str(), variable, "[a-z_]+"))))
                return true;
        }
    }
    return false;
}

}  // namespace

Complaints too_long(const std::vector<SourceFile>& files) {
    Complaints complaints;
    for (const SourceFile& file : files)
        if (file.lines.size() > most_lines)
            complaints.push_back(
                fmt::format("{}: {} lines, and {} is the most", file.path, file.lines.size(), most_lines));
    return complaints;
}

Complaints unguarded_headers(const std::vector<SourceFile>& files) {
    Complaints complaints;
    for (const SourceFile& file : files)
        if (file.path.ends_with(".hpp") && std::ranges::find(file.lines, "#pragma once") == file.lines.end())
            complaints.push_back(fmt::format("{}: no #pragma once", file.path));
    return complaints;
}

Complaints stray_blanks(const std::vector<SourceFile>& files) {
    return lines_that(files, "a tab, a carriage return or a trailing blank", [](const std::string& line) {
        return line.find_first_of("\t\r") != std::string::npos || line.ends_with(' ');
    });
}

Complaints unfinished_work(const std::vector<SourceFile>& files) {
    // In two halves, so that this file does not complain about itself.
    static const std::regex marks(
        "\\b(TO"
        "DO|FIX"
        "ME|XX"
        "X)\\b");
    return lines_that(files, "finish it, or open an issue",
                      [](const std::string& line) { return std::regex_search(line, marks); });
}

Complaints host_clock_uses(const std::vector<SourceFile>& files) {
    constexpr std::array<std::string_view, 4> allowed{"src/values/clock.cpp", "src/base/real_clock.hpp",
                                                      "src/cli/app.cpp", "src/guards/run/spawn.cpp"};
    std::vector<SourceFile> others;
    std::ranges::copy_if(files, std::back_inserter(others), [&](const SourceFile& file) {
        return std::ranges::find(allowed, file.path) == allowed.end();
    });
    return lines_that(others, "use the clock of the store, or base::real_clock",
                      [](const std::string& line) { return line.find("host_clock()") != std::string::npos; });
}

Complaints silent_skips(const std::vector<SourceFile>& files) {
    static const std::regex skip(
        "GTEST"
        "_SKIP\\(\\)");
    static const std::regex told("not_here|the release build runs this");
    Complaints complaints;
    for (const SourceFile& file : files) {
        if (file.path.starts_with("tests/conformance/")) continue;
        const auto wrong = lines_that(
            {file}, "say not_here and why, so that it is listed",
            [](const std::string& line) { return std::regex_search(line, skip) && !std::regex_search(line, told); });
        complaints.insert(complaints.end(), wrong.begin(), wrong.end());
    }
    return complaints;
}

Complaints globbed_sources(const std::vector<SourceFile>& cmake_files) {
    static const std::regex glob("^[^#]*\\b(file|FILE)\\s*\\(\\s*GLOB|^[^#]*\\baux_source_directory\\b");
    return lines_that(cmake_files, "list the sources",
                      [](const std::string& line) { return std::regex_search(line, glob); });
}

Complaints unlisted_sources(const std::vector<SourceFile>& sources, const std::vector<SourceFile>& cmake_files) {
    Complaints complaints;
    for (const SourceFile& source : sources) {
        const std::string name = source.path.substr(source.path.rfind('/') + 1);
        const auto lists_it = [&](const SourceFile& cmake_file) {
            const std::string folder = cmake_file.path.substr(0, cmake_file.path.rfind('/') + 1);
            return source.path.starts_with(folder) && names(cmake_file, name);
        };
        if (!std::ranges::any_of(cmake_files, lists_it))
            complaints.push_back(fmt::format("{}: no CMakeLists.txt names it", source.path));
    }
    return complaints;
}

}  // namespace holdfast::tidy
