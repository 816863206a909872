// Data files. Pieces of any size give the same rows, every row has a cell for each column, and rows that are written
// again are read the same.
#include "fuzz/target.hpp"
#include "guards/sql/data/csv.hpp"
#include "guards/sql/data/yaml.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::fuzz {
namespace {

namespace data = guards::data;

class Kept final : public data::RowSink {
public:
    [[nodiscard]] Result<void> columns(const std::vector<data::Column>& columns) override {
        require(names.empty() && !columns.empty(), "columns are told once");
        for (const data::Column& column : columns) names.push_back(column.name);
        return {};
    }
    [[nodiscard]] Result<void> row(std::size_t line, std::span<const data::Cell> cells) override {
        require(cells.size() == names.size(), "a row without a cell for each column");
        require(line >= last_line, "lines run backwards");
        last_line = line;
        for (const data::Cell& cell : cells) values.push_back(cell ? std::optional(std::string(*cell)) : std::nullopt);
        return {};
    }

    std::vector<std::string> names{};
    std::vector<std::optional<std::string>> values{};
    std::size_t last_line = 0;
};

std::optional<Kept*> read(Kept& kept, std::string_view text, std::size_t size) {
    data::CsvReader reader("f", kept);
    for (; !text.empty(); text.remove_prefix(std::min(size, text.size())))
        if (!reader.feed(text.substr(0, size))) return std::nullopt;
    return reader.finish() ? std::optional(&kept) : std::nullopt;
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
}

std::string written(const Kept& kept) {
    std::string text;
    for (std::size_t i = 0; i < kept.names.size(); ++i) text += (i > 0 ? "," : "") + quoted(kept.names[i]);
    text += "\r\n";
    for (std::size_t i = 0; i < kept.values.size(); ++i) {
        if (i % kept.names.size() > 0) text += ",";
        if (kept.values[i]) text += quoted(*kept.values[i]);
        if ((i + 1) % kept.names.size() == 0) text += "\n";
    }
    return text;
}

void run_csv(std::string_view text, std::size_t size) {
    Kept whole;
    const bool good = read(whole, text, text.size() + 1).has_value();
    // The mark at the beginning comes in one piece.
    Kept cut;
    require(read(cut, text, size + 3).has_value() == good, "pieces decide whether a file is good");
    require(cut.values == whole.values && cut.names == whole.names, "pieces decide what is read");
    if (!good) return;
    Kept again;
    require(read(again, written(whole), 4096).has_value(), "what was written is refused");
    require(again.values == whole.values && again.names == whole.names, "what was written is read otherwise");
}

void run(Bytes bytes) {
    const std::uint8_t choice = take_choice(bytes);
    if (choice % 2 == 0) return run_csv(text_of(bytes), choice / 2);
    std::istringstream in{std::string(text_of(bytes))};
    Kept kept;
    static_cast<void>(data::read_yaml("f", in, kept));
}

}  // namespace
}  // namespace holdfast::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    holdfast::fuzz::run({data, size});
    return 0;
}
