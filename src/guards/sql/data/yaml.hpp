#pragma once

#include "guards/sql/data/rows.hpp"

#include <iosfwd>
#include <string_view>

namespace holdfast::guards::data {

/// Reads a list of mappings, one for each row, or a mapping that is the only row, as events: nothing is kept but one
/// row. The keys of the first row are the columns, and every row has all of them. What stands in the file reaches the
/// database as text; `null`, `~` and nothing at all are NULL, unless in quotes.
///
/// Anchors, aliases, tags and nested values are refused: rows need none, and aliases multiply.
[[nodiscard]] Result<void> read_yaml(std::string_view path, std::istream& from, RowSink& sink);

}  // namespace holdfast::guards::data
