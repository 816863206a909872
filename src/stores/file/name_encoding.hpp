#pragma once

#include "holdfast/lease.hpp"

#include <optional>
#include <string>
#include <string_view>

/// How a lock's name becomes the name of its folder.
namespace holdfast::stores::file {

/// One folder name for one lock name: lower case, without a dot or a slash from the lock's name, so that it stays
/// inside its folder and is unique even where the file system ignores case. Long names are hashed; the record inside
/// carries the real name and is compared with it.
[[nodiscard]] std::string folder_name(const LockName& name);

/// The lock's name, from the name of its folder; empty if that is hashed, or not one of ours.
[[nodiscard]] std::optional<std::string> name_in(std::string_view folder);

/// Whether `folder` looks like something that `folder_name` made.
[[nodiscard]] bool is_folder_name(std::string_view folder);

}  // namespace holdfast::stores::file
