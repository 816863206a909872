#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// The project's files as text, which is all that the checks of this folder look at.
namespace holdfast::tidy {

struct SourceFile {
    std::string path{};  ///< From the project's root: `src/kernel/step.cpp`.
    std::vector<std::string> lines{};
};

/// What is wrong, one sentence each, beginning with the place.
using Complaints = std::vector<std::string>;

struct Include {
    std::string header{};
    bool quoted = false;
    std::size_t line = 0;  ///< From 1.
};

/// A file made up by a test.
[[nodiscard]] SourceFile made_up(std::string path, std::string_view text);

[[nodiscard]] SourceFile read_source(const std::string& path);

/// The files below `folders` whose names end in one of `endings`, sorted. A folder that is not there has none.
[[nodiscard]] std::vector<SourceFile> sources_below(std::initializer_list<std::string_view> folders,
                                                    std::initializer_list<std::string_view> endings);

[[nodiscard]] std::vector<Include> includes_of(const SourceFile& file);

/// `src/kernel/step.cpp:12`.
[[nodiscard]] std::string place(const SourceFile& file, std::size_t line);

/// Where the project is.
[[nodiscard]] std::filesystem::path project_root();

}  // namespace holdfast::tidy
