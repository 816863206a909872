#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Where a user's files are, after the XDG Base Directory Specification.
namespace holdfast::config {

/// The value of an environment variable; one that is empty counts as not set.
[[nodiscard]] std::optional<std::string> variable(const std::string& name);

/// The folders that may hold a holdfast.toml, the user's before the host's.
[[nodiscard]] std::vector<std::string> config_folders();

/// The user's folder for what outlives a restart, an absolute path. Absent when the user has no home.
[[nodiscard]] std::optional<std::string> state_folder();

/// `folder/name`, also if the folder is `/`.
[[nodiscard]] std::string below(const std::string& folder, std::string_view name);

}  // namespace holdfast::config
