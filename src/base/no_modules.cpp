// Part of the short program, instead of module.cpp: nothing is ever loaded there. See src/cli/short.cpp.

#include "base/module.hpp"

#include <fmt/format.h>

namespace holdfast::base {

Result<const ModuleHead*> load_module(std::string_view kind, std::string_view name) {
    return fail(Errc::usage, fmt::format("this program has no {} {}", name, kind));
}

}  // namespace holdfast::base
