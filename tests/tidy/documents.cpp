#include "tidy/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

namespace holdfast::tidy {
namespace {

std::string expected_row(const ErrorRow& row) {
    const std::string http = row.http_status == 0 ? "–" : std::to_string(row.http_status);
    return fmt::format("| `{}` | {} | {} | {} |", row.name, row.exit_status, http, row.meaning);
}

/// Characters, not bytes, of UTF-8.
std::size_t columns_of(std::string_view line) {
    return static_cast<std::size_t>(
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string_view without_indent(std::string_view line) {
    return line.substr(std::min(line.find_first_not_of(' '), line.size()));
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

Complaints wide_prose(const std::vector<SourceFile>& pages) {
    Complaints complaints;
    for (const SourceFile& page : pages) {
        bool in_code = false;
        for (std::size_t i = 0; i < page.lines.size(); ++i) {
            const std::string_view text = without_indent(page.lines[i]);
            if (text.starts_with("```")) in_code = !in_code;
            if (in_code || text.starts_with('|') || columns_of(page.lines[i]) <= most_columns) continue;
            complaints.push_back(fmt::format("{}: {} characters, and {} is the most", place(page, i + 1),
                                             columns_of(page.lines[i]), most_columns));
        }
    }
    return complaints;
}

std::vector<std::string> labels_in(const std::vector<SourceFile>& cmake_files) {
    static const std::regex label(R"(\bLABELS ([a-z]+))");
    std::set<std::string> found;
    for (const SourceFile& file : cmake_files)
        for (const std::string& line : file.lines) {
            std::smatch match;
            if (!line.starts_with('#') && std::regex_search(line, match, label)) found.insert(match[1]);
        }
    return {found.begin(), found.end()};
}

std::vector<std::string> folders_in(std::string_view folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(project_root() / folder))
        if (entry.is_directory()) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

}  // namespace holdfast::tidy
