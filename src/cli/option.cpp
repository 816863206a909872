#include "cli/option.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

std::string variable_of(const Option& option) {
    std::string text = "HOLDFAST_";
    for (const char c : option.name)
        text += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return text;
}

std::string key_of(const Option& option) {
    std::string text(option.name);
    for (char& c : text)
        if (c == '-') c = '_';
    return text;
}

std::string spelling_of(const Option& option) {
    const std::string letter = option.letter == '\0' ? "    " : fmt::format("-{}, ", option.letter);
    return fmt::format("{}--{}{}{}", letter, option.name, option.value.empty() ? "" : " ", option.value);
}

std::vector<std::string_view> choices_of(const Option& option) {
    std::vector<std::string_view> choices;
    for (std::string_view rest = option.choices; !rest.empty();) {
        choices.push_back(rest.substr(0, rest.find('|')));
        rest.remove_prefix(std::min(choices.back().size() + 1, rest.size()));
    }
    return choices;
}

}  // namespace holdfast::cli
