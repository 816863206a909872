#pragma once

#include "holdfast/error.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Store URLs as people write them: in a variable, a file, or below a folder.
namespace holdfast::config {

/// The stores that `text` names, separated by white space. Refused with `config`.
[[nodiscard]] Result<std::vector<std::string>> stores_in(std::string_view text);

/// Whether `text` looks like several stores in one: a comma or white space, and the scheme of a store after it. It
/// would be one store with a long name, which nobody else uses. The servers of a cluster have no scheme.
[[nodiscard]] bool is_several_stores(std::string_view text);

/// True if `url` may contain a password: before an @, or as a parameter.
[[nodiscard]] bool may_hold_secret(std::string_view url);

/// Whether the URL itself binds its locks to a session.
[[nodiscard]] bool asks_for_session(const std::string& url);

/// `urls` as one value for HOLDFAST_STORE, separated by spaces, with relative paths counted from `folder`.
[[nodiscard]] std::string joined_stores(const std::vector<std::string>& urls, const std::string& folder);

/// A store's URL in a configuration file in `folder`. A relative path counts from there: commands in two folders of one
/// project must not end up with two stores.
[[nodiscard]] std::string store_from(const std::string& url, const std::string& folder);

/// `sqlite:` in the user's state folder, an absolute path. Refused with `config` when the user has no home.
[[nodiscard]] Result<std::string> default_store();

}  // namespace holdfast::config
