// Part of the short program, instead of module.cpp: nothing is ever loaded there. See src/cli/short.cpp.

#include "base/module.hpp"

#include <fmt/format.h>

namespace holdfast::base {

Result<void*> load_module(std::string_view kind, std::string_view name, const char*) {
    return fail(Errc::usage, fmt::format("this program has no {} {}", name, kind));
}

Error module_of_another_version(std::string_view file) { return {Errc::store_unavailable, std::string(file)}; }

}  // namespace holdfast::base
