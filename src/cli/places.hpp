#pragma once

#include "holdfast/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Where a user's files are, after the XDG Base Directory Specification.
namespace holdfast::cli {

/// The value of an environment variable; one that is empty counts as not set.
[[nodiscard]] std::optional<std::string> variable(const std::string& name);

/// The folders that may hold a holdfast.toml, the user's before the host's.
[[nodiscard]] std::vector<std::string> config_folders();

/// `sqlite:` in the user's state folder, an absolute path. Refused with `config` when the user has no home.
[[nodiscard]] Result<std::string> default_store();

/// A store's URL in a configuration file in `folder`. A relative path counts from there: commands in two
/// folders of one project must not end up with two stores.
[[nodiscard]] std::string store_from(const std::string& url, const std::string& folder);

/// What separates the stores in HOLDFAST_STORE.
constexpr std::string_view white_space = " \t\n\v\f\r";
/// `url` with white space as %-escapes.
[[nodiscard]] std::string as_one_word(const std::string& url);

}  // namespace holdfast::cli
