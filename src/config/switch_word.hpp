#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace holdfast::config {

/// Whether the word of a switch stands for yes or for no; absent for any other. `skip` and `fail` because the switch
/// `--if-held` of release shares its variable with acquire's.
[[nodiscard]] inline std::optional<bool> parse_switch(std::string_view text) {
    constexpr std::array yes{"on", "true", "yes", "1", "skip"};
    constexpr std::array no{"off", "false", "no", "0", "fail"};
    if (std::ranges::find(yes, text) != yes.end()) return true;
    if (std::ranges::find(no, text) != no.end()) return false;
    return std::nullopt;
}

}  // namespace holdfast::config
