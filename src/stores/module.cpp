#include "stores/module.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

namespace holdfast::stores {
namespace {

namespace fs = std::filesystem;

/// Where modules can be: beside the program, as built and as installed, and where the library was installed.
std::vector<fs::path> folders() {
    std::vector<fs::path> found;
    // Who runs us with more rights than their own must not choose what we load.
    if (const char* chosen = secure_getenv("HOLDFAST_MODULES"); chosen != nullptr && *chosen != '\0')
        found.emplace_back(chosen);
    std::error_code none;
    const fs::path program = fs::read_symlink("/proc/self/exe", none);
    if (!none) found.push_back(program.parent_path() / HOLDFAST_MODULES_FROM_PROGRAM);
    found.emplace_back(HOLDFAST_MODULES_INSTALLED);
    return found;
}

Result<const Module*> entry_of(void* loaded, const fs::path& path) {
    // What dlsym gives is an object pointer; POSIX allows this cast.
    const auto entry = reinterpret_cast<ModuleEntry>(dlsym(loaded, module_entry));  // NOLINT
    const Module* module = entry == nullptr ? nullptr : entry();
    if (module == nullptr || module->version != HOLDFAST_VERSION)
        return fail(Errc::store_unavailable, fmt::format("{} belongs to another version of holdfast than this one, {}",
                                                         path.string(), HOLDFAST_VERSION));
    return module;
}

}  // namespace

Result<const Module*> load_module(std::string_view name) {
    const std::string file = fmt::format("holdfast-store-{}.so", name);
    for (const fs::path& folder : folders()) {
        const fs::path path = folder / file;
        std::error_code none;
        if (!fs::exists(path, none)) continue;
        // Never unloaded: a store may outlive any scope, and drivers do not like to go.
        void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (loaded == nullptr)
            return fail(Errc::store_unavailable, fmt::format("the {} store cannot be loaded: {}", name, dlerror()));
        return entry_of(loaded, path);
    }
    return fail(Errc::usage, fmt::format("this build has no {} store: {} is not installed", name, file));
}

}  // namespace holdfast::stores
