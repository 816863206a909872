#include "tidy/named_tests.hpp"

#include <fmt/format.h>

#include <regex>
#include <set>
#include <string>

namespace holdfast::tidy {
namespace {

/// What the first group of `pattern` is, for each place in `line` where it fits.
std::set<std::string> all_matches(const std::string& line, const std::regex& pattern) {
    std::set<std::string> found;
    for (std::sregex_iterator match(line.begin(), line.end(), pattern), end; match != end; ++match)
        found.insert((*match)[1].str());
    return found;
}

}  // namespace

Complaints tests_that_do_not_exist(const SourceFile& page, const std::vector<SourceFile>& sources) {
    static const std::regex macro(R"(^TEST(?:_F|_P)?\((\w+), (\w+)\))");
    static const std::regex name(R"(`([A-Z]\w+\.[A-Z]\w+)`)");
    std::set<std::string> existing;
    for (const SourceFile& source : sources)
        for (const std::string& line : source.lines)
            if (std::smatch match; line.starts_with("TEST") && std::regex_search(line, match, macro))
                existing.insert(match[1].str() + "." + match[2].str());
    Complaints complaints;
    for (std::size_t i = 0; i < page.lines.size(); ++i)
        for (const std::string& found : all_matches(page.lines[i], name))
            if (!existing.contains(found))
                complaints.push_back(fmt::format("{}: there is no test {}", place(page, i + 1), found));
    return complaints;
}

Complaints numbers_without_partner(const SourceFile& page) {
    static const std::regex reference(R"(\[(\d+)\])");
    static const std::regex row(R"(^\| (\d+) \|)");
    std::set<std::string> referred;
    std::set<std::string> rows;
    for (const std::string& line : page.lines) {
        referred.merge(all_matches(line, reference));
        rows.merge(all_matches(line, row));
    }
    Complaints complaints;
    for (const std::string& number : referred)
        if (!rows.contains(number)) complaints.push_back(fmt::format("{}: [{}] has no row", page.path, number));
    for (const std::string& number : rows)
        if (!referred.contains(number))
            complaints.push_back(fmt::format("{}: nothing refers to row {}", page.path, number));
    return complaints;
}

}  // namespace holdfast::tidy
