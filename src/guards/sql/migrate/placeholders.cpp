#include "guards/sql/migrate/placeholders.hpp"

#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace holdfast::guards::migrate {
namespace {

bool goes_on_name(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '_' || letter == '.' || letter == '-';
}

/// The name in `${name}` at the beginning of `text`; empty if there is none.
std::string_view name_at(std::string_view text) {
    if (!text.starts_with("${")) return {};
    std::size_t end = 2;
    while (end < text.size() && goes_on_name(text[end])) ++end;
    return end < text.size() && text[end] == '}' ? text.substr(2, end - 2) : std::string_view{};
}

}  // namespace

Result<std::string> fill_in(std::string_view script, const Placeholders& value_of, std::string_view path) {
    std::string result;
    std::vector<std::string> missing;
    std::size_t line = 1;
    for (std::size_t at = 0; at < script.size();) {
        if (script[at] == '\n') ++line;
        const std::string_view rest = script.substr(at);
        if (rest.front() != '$') {
            result += rest.front();
            ++at;
        } else if (const std::string_view escaped = name_at(rest.substr(1)); !escaped.empty()) {
            result += rest.substr(1, escaped.size() + 3);
            at += escaped.size() + 4;
        } else if (const std::string_view name = name_at(rest); !name.empty()) {
            const auto value = value_of(name);
            if (value) result += *value;
            if (!value) missing.push_back(fmt::format("{}:{}: ${{{}}}", printable(path), line, name));
            at += name.size() + 3;
        } else {
            result += '$';
            ++at;
        }
    }
    if (missing.empty()) return result;
    Error error{Errc::migration_failed, fmt::format("no value is set for {}", fmt::join(missing, ", "))};
    error.hint =
        "set it with --placeholder NAME=VALUE, in placeholder = [...] of holdfast.toml or as "
        "HOLDFAST_PLACEHOLDER_NAME; $${name} writes ${name} itself";
    return std::unexpected(std::move(error));
}

}  // namespace holdfast::guards::migrate
