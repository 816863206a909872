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

/// The folders directly below `folder`, by name.
[[nodiscard]] std::vector<std::string> folders_in(std::string_view folder);

}  // namespace holdfast::tidy
