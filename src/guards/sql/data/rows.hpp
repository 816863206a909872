#pragma once

#include "holdfast/error.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What is read out of data files, whatever their format.
namespace holdfast::guards::data {

/// A field. Absent: NULL.
using Cell = std::optional<std::string_view>;

struct Column {
    std::string name{};
    std::size_t line = 1;  ///< Where the file names it.
};

/// Takes what a file says, from its beginning to its end. An error ends the reading.
class RowSink {
public:
    RowSink(const RowSink&) = delete;
    RowSink& operator=(const RowSink&) = delete;
    virtual ~RowSink() = default;

    /// Before the first row, once. Not at all for a file that lists no row and names no column.
    [[nodiscard]] virtual Result<void> columns(const std::vector<Column>& columns) = 0;
    /// As many cells as columns. They live as long as the call. `line` is where the row begins.
    [[nodiscard]] virtual Result<void> row(std::size_t line, std::span<const Cell> cells) = 0;

protected:
    RowSink() = default;
};

/// `data/users/a.csv:17: …`
[[nodiscard]] std::unexpected<Error> refuse(std::string_view path, std::size_t line, std::string_view why);

/// How long a row may be. A quote that is never closed must not fill the memory.
inline constexpr std::size_t longest_row = std::size_t{64} * 1024 * 1024;
inline constexpr std::size_t most_columns = 4096;

/// Whether these can be the columns of a table: none is empty, none is there twice.
[[nodiscard]] Result<void> check_columns(std::string_view path, const std::vector<Column>& columns);

}  // namespace holdfast::guards::data
