#include "tidy/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

namespace holdfast::tidy {
namespace {

std::string expected_row(const ErrorRow& row) {
    const std::string http = row.http_status == 0 ? "–" : std::to_string(row.http_status);
    return fmt::format("| `{}` | {} | {} | {} |", row.name, row.exit_status, http, row.meaning);
}

}  // namespace

Complaints wrong_error_rows(const SourceFile& page, std::span<const ErrorRow> rows) {
    // The page may speak of codes in other tables, too; only this one has a status in its second column.
    static const std::regex row_of_table(R"(^\| `E_[A-Z_]+` \| \d+ \|)");
    std::vector<std::string> written;
    std::ranges::copy_if(page.lines, std::back_inserter(written),
                         [](const std::string& line) { return std::regex_search(line, row_of_table); });
    std::vector<std::string> expected;
    std::ranges::transform(rows, std::back_inserter(expected), expected_row);

    Complaints complaints;
    for (const std::string& row : expected)
        if (std::ranges::find(written, row) == written.end())
            complaints.push_back(fmt::format("{}: missing: {}", page.path, row));
    for (const std::string& row : written)
        if (std::ranges::find(expected, row) == expected.end())
            complaints.push_back(fmt::format("{}: not in error_table(): {}", page.path, row));
    if (complaints.empty() && written != expected)
        complaints.push_back(fmt::format("{}: the rows are in another order than error_table()", page.path));
    return complaints;
}

Complaints codes_without_row(const SourceFile& header, std::span<const ErrorRow> rows) {
    static const std::regex enumerator(R"(^\s+([a-z_]+) = (\d+),)");
    Complaints complaints;
    for (const std::string& line : header.lines) {
        std::smatch match;
        if (!std::regex_search(line, match, enumerator)) continue;
        const auto code = static_cast<Errc>(std::stoi(match[2]));
        if (std::ranges::find(rows, code, &ErrorRow::code) == rows.end())
            complaints.push_back(fmt::format("{}: {} has no row", header.path, match[1].str()));
    }
    return complaints;
}

Complaints unmentioned(const SourceFile& page, const std::vector<std::string>& words) {
    Complaints complaints;
    for (const std::string& word : words) {
        const auto shows_it = [&](const std::string& line) { return line.find(word) != std::string::npos; };
        if (!std::ranges::any_of(page.lines, shows_it))
            complaints.push_back(fmt::format("{}: says nothing of {}", page.path, word));
    }
    return complaints;
}

std::vector<std::string> folders_in(std::string_view folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(project_root() / folder))
        if (entry.is_directory()) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

}  // namespace holdfast::tidy
