#include "cli/pattern.hpp"

#include <fnmatch.h>

namespace holdfast::cli {

bool is_pattern(std::string_view word) { return word.find_first_of("*?") != std::string_view::npos; }

bool matches(const std::string& pattern, const LockName& name) {
    return pattern.empty() || fnmatch(pattern.c_str(), name.text().c_str(), 0) == 0;
}

std::string prefix_of(std::string_view pattern) {
    return std::string(pattern.substr(0, pattern.find_first_of("*?[\\")));
}

}  // namespace holdfast::cli
