#include "base/module.hpp"
#include "server/serve.hpp"

namespace holdfast::server {

Result<void> serve(Store& store, const Clock& clock, const ServeOptions& options) {
    const auto found = base::load_module("server", "daemon", module_entry);
    if (!found) return std::unexpected(found.error());
    // What is found by name is an object pointer; POSIX allows this cast.
    const Module* const module = reinterpret_cast<ModuleEntry>(*found)();  // NOLINT
    if (module == nullptr || module->version != HOLDFAST_VERSION)
        return std::unexpected(base::module_of_another_version("the daemon"));
    return module->serve(store, clock, options);
}

}  // namespace holdfast::server
