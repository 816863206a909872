#pragma once

#include "guards/sql/data/rows.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

/// Keeps all that a file says.
class Collected final : public guards::data::RowSink {
public:
    struct Row {
        std::size_t line;
        std::vector<std::optional<std::string>> cells;
        [[nodiscard]] bool operator==(const Row&) const = default;
    };

    [[nodiscard]] Result<void> columns(const std::vector<guards::data::Column>& columns) override {
        for (const auto& column : columns) names.push_back(column.name);
        return {};
    }
    [[nodiscard]] Result<void> row(std::size_t line, std::span<const guards::data::Cell> cells) override {
        Row row{line, {}};
        for (const auto& cell : cells) row.cells.push_back(cell ? std::optional(std::string(*cell)) : std::nullopt);
        rows.push_back(std::move(row));
        return {};
    }

    std::vector<std::string> names{};
    std::vector<Row> rows{};
};

}  // namespace holdfast::tests
