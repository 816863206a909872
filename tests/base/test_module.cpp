// A module that has nothing but its description. Built in several ways: see CMakeLists.txt.

#include "base/module.hpp"

extern "C" [[gnu::visibility("default")]] const holdfast::base::ModuleHead* TEST_MODULE_ENTRY() {
    static constexpr holdfast::base::ModuleHead module{HOLDFAST_ABI_TAG};
    return &module;
}
