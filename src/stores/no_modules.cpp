// Part of the short program, instead of module.cpp: nothing is ever loaded there. See src/cli/short.cpp.

#include "stores/module.hpp"

#include <fmt/format.h>

namespace holdfast::stores {

Result<const Module*> load_module(std::string_view name) {
    return fail(Errc::usage, fmt::format("this program has no {} store", name));
}

}  // namespace holdfast::stores
