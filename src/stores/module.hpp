#pragma once

#include "base/url.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

/// Stores whose drivers are large are modules: shared objects that are loaded when a URL asks for them. A
/// command that uses a file or SQLite does not pay for them.
namespace holdfast::stores {

struct Module {
    std::string_view version;  ///< Of Holdfast. Only modules of the same build fit.
    Result<std::unique_ptr<Store>> (*open)(base::Url url, const Clock& clock);
    std::string_view (*schema)();  ///< Empty where a store has none.
};

/// Every module has one function with this name.
inline constexpr const char* module_entry = "holdfast_store_module";
using ModuleEntry = const Module* (*)();

/// Loads the module `name`, once; it stays for the life of the process.
[[nodiscard]] Result<const Module*> load_module(std::string_view name);

}  // namespace holdfast::stores

/// Defines a module's entry. `HOLDFAST_VERSION` comes from the build.
#define HOLDFAST_STORE_MODULE(open, schema)                                                             \
    extern "C" [[gnu::visibility("default")]] const holdfast::stores::Module* holdfast_store_module() { \
        static constexpr holdfast::stores::Module module{HOLDFAST_VERSION, open, schema};               \
        return &module;                                                                                 \
    }
