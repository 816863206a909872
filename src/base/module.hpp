#pragma once

#include "base/abi.hpp"
#include "holdfast/error.hpp"

#include <string_view>

/// Modules are parts with large drivers: shared objects, so that a command which does not need them does not pay for
/// them. A program may also link them.
namespace holdfast::base {

/// What the description of every module begins with.
struct ModuleHead {
    AbiTag abi;
};

/// Every module has one function of this type: `holdfast_KIND_module_NAME`.
using ModuleEntry = const ModuleHead* (*)();

/// Loads `holdfast-KIND-NAME.so`, once, and gives its description; it stays for the life of the process. A module of
/// another build is refused with `store_unavailable` and the difference.
[[nodiscard]] Result<const ModuleHead*> load_module(std::string_view kind, std::string_view name);

}  // namespace holdfast::base

/// The tag of the build, for the description of a module. The two names come from the build.
#define HOLDFAST_ABI_TAG holdfast::base::make_abi_tag(HOLDFAST_VERSION, HOLDFAST_COMMIT)
