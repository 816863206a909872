#include "stores/module.hpp"

#include "base/module.hpp"

#include <fmt/format.h>

namespace holdfast::stores {

Result<const Module*> load_module(std::string_view name) {
    const auto found = base::load_module("store", name, module_entry);
    if (!found) return std::unexpected(found.error());
    // What is found by name is an object pointer; POSIX allows this cast.
    const Module* const module = reinterpret_cast<ModuleEntry>(*found)();  // NOLINT
    if (module == nullptr || module->version != HOLDFAST_VERSION)
        return std::unexpected(base::module_of_another_version(fmt::format("the {} store", name)));
    return module;
}

}  // namespace holdfast::stores
