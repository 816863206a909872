#include "guards/sql/data/rows.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <set>

namespace holdfast::guards::data {

std::unexpected<Error> refuse(std::string_view path, std::size_t line, std::string_view why) {
    return fail(Errc::data_invalid, fmt::format("{}:{}: {}", printable(path), line, why));
}

Result<void> check_columns(std::string_view path, const std::vector<Column>& columns) {
    std::set<std::string_view> seen;
    for (const Column& column : columns) {
        if (column.name.empty()) return refuse(path, column.line, "a column has no name");
        if (!seen.insert(column.name).second)
            return refuse(path, column.line, fmt::format("the column \"{}\" is there twice", printable(column.name)));
    }
    return {};
}

}  // namespace holdfast::guards::data
