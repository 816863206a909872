#include "guards/sql/data/source.hpp"

#include "values/hex.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::guards::data {
namespace {

constexpr std::array names{std::pair{Strategy::truncate, "truncate"}, std::pair{Strategy::upsert, "upsert"},
                           std::pair{Strategy::insert_missing, "insert_missing"},
                           std::pair{Strategy::mirror, "mirror"}};

/// Ends a reading early, without an error of anybody.
std::unexpected<Error> enough() { return fail(Errc::usage, "enough was read"); }

/// Brings the rows of one file into the order of the table's columns.
class InOrder final : public RowSink {
public:
    InOrder(const TableSource& table, const SourceFile& file, const RowVisitor& visit)
        : table_(&table), file_(&file), visit_(&visit) {}

    [[nodiscard]] Result<void> columns(const std::vector<Column>& columns) override {
        is_in_order_ = std::ranges::equal(columns, table_->columns, {}, &Column::name, &Column::name);
        if (is_in_order_) return {};
        from_.clear();
        for (const Column& wanted : table_->columns) {
            const auto found = std::ranges::find(columns, wanted.name, &Column::name);
            if (found == columns.end())
                return refuse(file_->path, columns.front().line,
                              fmt::format("the column \"{}\" is missing, which {} has; all files of a table have the "
                                          "same columns",
                                          printable(wanted.name), printable(table_->columns_path)));
            from_.push_back(static_cast<std::size_t>(found - columns.begin()));
        }
        const auto extra = std::ranges::find_if(columns, [&](const Column& column) {
            return std::ranges::find(table_->columns, column.name, &Column::name) == table_->columns.end();
        });
        if (extra != columns.end())
            return refuse(file_->path, extra->line,
                          fmt::format("the column \"{}\" is not in {}; all files of a table have the same columns",
                                      printable(extra->name), printable(table_->columns_path)));
        return {};
    }
    [[nodiscard]] Result<void> row(std::size_t line, std::span<const Cell> cells) override {
        if (is_in_order_) return (*visit_)({file_, line, cells});
        ordered_.clear();
        for (const std::size_t at : from_) ordered_.push_back(cells[at]);
        return (*visit_)({file_, line, ordered_});
    }

private:
    const TableSource* table_;
    const SourceFile* file_;
    const RowVisitor* visit_;
    bool is_in_order_ = true;
    std::vector<std::size_t> from_{};
    std::vector<Cell> ordered_{};
};

/// Reads no more than the columns.
class OnlyColumns final : public RowSink {
public:
    [[nodiscard]] Result<void> columns(const std::vector<Column>& columns) override {
        found = columns;
        return enough();
    }
    [[nodiscard]] Result<void> row(std::size_t /*line*/, std::span<const Cell> /*cells*/) override { return {}; }

    std::vector<Column> found{};
};

void add_text(Sha256& digest, std::string_view text) {
    const std::string framed = fmt::format("{}:{}\n", text.size(), text);
    digest.update({reinterpret_cast<const std::uint8_t*>(framed.data()), framed.size()});
}

}  // namespace

std::string_view name_of(Strategy strategy) {
    return std::ranges::find(names, strategy, &decltype(names)::value_type::first)->second;
}

std::optional<Strategy> strategy_of(std::string_view name) {
    const auto* const found =
        std::ranges::find(names, name, [](const auto& each) { return std::string_view(each.second); });
    return found == names.end() ? std::nullopt : std::optional(found->first);
}

std::string digest_of(const std::vector<Sha256>& tables) {
    Sha256 all;
    for (Sha256 table : tables) all.update(table.finish());
    return to_hex(all.finish());
}

Result<Source> Source::open(const std::string& path, const std::vector<TableSpec>& specs) {
    auto folder = DataFolder::open(path);
    if (!folder) return std::unexpected(folder.error());
    std::vector<TableSource> tables;
    for (const TableSpec& spec : specs) {
        TableSource table{.spec = spec};
        auto files = folder->files_of(spec.name);
        if (!files) return std::unexpected(files.error());
        table.files = *std::move(files);
        for (const SourceFile& file : table.files) {
            OnlyColumns sink;
            Sha256 ignored;
            const auto read = folder->read(file, sink, ignored);
            if (!read && sink.found.empty()) return std::unexpected(read.error());
            if (sink.found.empty()) continue;
            table.columns = std::move(sink.found);
            table.columns_path = file.path;
            break;
        }
        tables.push_back(std::move(table));
    }
    return Source(*std::move(folder), std::move(tables));
}

Result<void> Source::read(const TableSource& table, const RowVisitor& visit, Sha256& digest) const {
    for (const SourceFile& file : table.files) {
        add_text(digest, file.below);
        InOrder sink(table, file, visit);
        if (auto read = folder_.read(file, sink, digest); !read) return read;
    }
    return {};
}

Result<std::string> Source::check() const {
    std::vector<Sha256> digests;
    for (const TableSource& table : tables_) {
        const auto visit = [](const SourceRow& /*row*/) { return Result<void>(); };
        if (auto all = read(table, visit, digests.emplace_back()); !all) return std::unexpected(all.error());
    }
    return digest_of(digests);
}

std::string Source::place_of(const TableSource& table, std::uint64_t row) const {
    std::string place = printable(table.files.front().path);
    std::uint64_t at = 0;
    const auto visit = [&](const SourceRow& each) -> Result<void> {
        if (at++ != row) return {};
        place = fmt::format("{}:{}", printable(each.file->path), each.line);
        return enough();
    };
    Sha256 ignored;
    // An error of the file ends the search, too.
    static_cast<void>(read(table, visit, ignored));
    return place;
}

}  // namespace holdfast::guards::data
