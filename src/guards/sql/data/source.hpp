#pragma once

#include "guards/sql/data/file.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::data {

/// What happens to the rows that are there.
enum class Strategy {
    truncate,        ///< All go, and those of the files come.
    upsert,          ///< Those of the files are added or changed; others stay.
    insert_missing,  ///< Those of the files are added where their key is not there; nothing else changes.
    mirror,          ///< As upsert, and those that no file has go.
};
[[nodiscard]] std::string_view name_of(Strategy strategy);
[[nodiscard]] std::optional<Strategy> strategy_of(std::string_view name);

/// What the configuration says of a table.
struct TableSpec {
    std::string name{};
    Strategy strategy = Strategy::upsert;
    std::vector<std::string> key{};  ///< Empty: the primary key.
};

/// A table and its files.
struct TableSource {
    TableSpec spec{};
    std::vector<SourceFile> files{};
    std::vector<Column> columns{};  ///< Those of the first file that names some. Every other file has the same ones.
    std::string columns_path{};     ///< That file.
};

/// A row of a table, with its cells in the order of the table's columns.
struct SourceRow {
    const SourceFile* file;
    std::size_t line;
    std::span<const Cell> cells;
};
using RowVisitor = std::function<Result<void>(const SourceRow&)>;

/// All files that a configuration names.
class Source {
public:
    /// Lists the files and reads which columns they name.
    [[nodiscard]] static Result<Source> open(const std::string& path, const std::vector<TableSpec>& specs);

    [[nodiscard]] const std::vector<TableSource>& tables() const { return tables_; }

    /// Reads everything, and finds every mistake that can be found without a database. Returns a digest of the bytes
    /// that were read.
    [[nodiscard]] Result<std::string> check() const;

    /// One table, from its first row to its last. Its bytes are added to `digest`.
    [[nodiscard]] Result<void> read(const TableSource& table, const RowVisitor& visit, Sha256& digest) const;
    /// The file and line of a row, such as `data/users/a.csv:17`. Rows are counted from 0. Only the path if there is no
    /// such row.
    [[nodiscard]] std::string place_of(const TableSource& table, std::uint64_t row) const;

private:
    Source(DataFolder folder, std::vector<TableSource> tables)
        : folder_(std::move(folder)), tables_(std::move(tables)) {}

    DataFolder folder_;
    std::vector<TableSource> tables_;
};

/// What `Source::check` gives, of the digests of all tables in their order.
[[nodiscard]] std::string digest_of(const std::vector<Sha256>& tables);

}  // namespace holdfast::guards::data
