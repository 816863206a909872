#pragma once

#include "holdfast/lease.hpp"

#include <string>
#include <string_view>

/// How a lock's name becomes the name of its folder.
namespace holdfast::stores::file {

/// One folder name for one lock name: lower case, without a dot or a slash from the lock's name, so that
/// it neither leaves its folder nor meets another one where case is folded. Long names are hashed; the
/// record inside carries the real name and is compared with it.
[[nodiscard]] std::string folder_name(const LockName& name);

/// Whether a folder can belong to a lock whose name begins with `prefix`. Certain for readable folder
/// names; a hashed one always can.
[[nodiscard]] bool may_begin_with(std::string_view folder, std::string_view prefix);

/// Whether `folder` looks like something that `folder_name` made.
[[nodiscard]] bool is_folder_name(std::string_view folder);

}  // namespace holdfast::stores::file
