#pragma once

#include "holdfast/error.hpp"
#include "tidy/source_tree.hpp"

#include <span>
#include <string_view>
#include <vector>

/// Pages of docs/ that repeat what the code says, and must say the same.
namespace holdfast::tidy {

/// Rows of `page` that differ from `rows`, in order: code, exit status, HTTP status, meaning.
[[nodiscard]] Complaints wrong_error_rows(const SourceFile& page, std::span<const ErrorRow> rows);

/// Enumerators of `Errc` in `header` that have no row.
[[nodiscard]] Complaints codes_without_row(const SourceFile& header, std::span<const ErrorRow> rows);

/// Those of `words`, such as `src/kernel` or `sqlite:`, that appear nowhere on `page`.
[[nodiscard]] Complaints unmentioned(const SourceFile& page, const std::vector<std::string>& words);

/// Lines of prose with more than `most_columns` characters. Tables and code blocks may be wider.
inline constexpr std::size_t most_columns = 120;
[[nodiscard]] Complaints wide_prose(const std::vector<SourceFile>& pages);

/// The labels that `cmake_files` give to tests by name, each once.
[[nodiscard]] std::vector<std::string> labels_in(const std::vector<SourceFile>& cmake_files);

/// The folders directly below `folder`, by name.
[[nodiscard]] std::vector<std::string> folders_in(std::string_view folder);

}  // namespace holdfast::tidy
