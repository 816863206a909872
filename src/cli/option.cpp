#include "cli/option.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

std::string spelling_of(const Option& option) {
    const std::string letter = option.letter == '\0' ? "    " : fmt::format("-{}, ", option.letter);
    return fmt::format("{}--{}{}{}", letter, option.name, option.value.empty() ? "" : " ", option.value);
}

}  // namespace holdfast::cli
