#include "config/setting.hpp"

#include <algorithm>

namespace holdfast::config {

std::string variable_of(const Setting& setting) {
    std::string text = "HOLDFAST_";
    for (const char c : setting.name)
        text += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return text;
}

std::string key_of(const Setting& setting) {
    std::string text(setting.name);
    std::ranges::replace(text, '-', '_');
    return setting.section.empty() ? text : std::string(setting.section) + "." + text;
}

std::vector<std::string_view> split_choices(std::string_view choices) {
    std::vector<std::string_view> all;
    while (!choices.empty()) {
        all.push_back(choices.substr(0, choices.find('|')));
        choices.remove_prefix(std::min(all.back().size() + 1, choices.size()));
    }
    return all;
}

}  // namespace holdfast::config
