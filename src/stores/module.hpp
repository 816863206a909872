#pragma once

#include "base/module.hpp"
#include "base/url.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

/// Stores whose drivers are large are modules: shared objects that are loaded when a URL asks for them. A
/// command that uses a file or SQLite does not pay for them.
namespace holdfast::stores {

struct Module : base::ModuleHead {
    Result<std::unique_ptr<Store>> (*open)(base::Url url, const Clock& clock);
    std::string_view (*schema)();  ///< Empty where a store has none.
};

}  // namespace holdfast::stores

/// Defines the entry of the module `name`.
#define HOLDFAST_STORE_MODULE(name, open, schema)                                                                \
    extern "C" [[gnu::visibility("default")]] const holdfast::base::ModuleHead* holdfast_store_module_##name() { \
        static constexpr holdfast::stores::Module module{{HOLDFAST_ABI_TAG}, open, schema};                      \
        return &module;                                                                                          \
    }
