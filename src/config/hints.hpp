#pragma once

#include "holdfast/error.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Suggests the next command, ready to be typed.
namespace holdfast::config {

/// `text` as one word of a POSIX shell, whatever it contains.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// ` NAME -s URL` as it is typed after a command. A name that begins with a dash stands last, after two dashes.
[[nodiscard]] std::string name_and_flags(std::string_view name, const std::string& flags);

/// What to do about an error of this kind. Every suggested command is repeated with each of `flags`, such as ` -s URL`:
/// a command that looks takes one store. `may_be_wrong_store`: the lease may be one of another store.
[[nodiscard]] std::string hint_for(const Error& error, const std::vector<std::string>& flags = {""},
                                   bool may_be_wrong_store = false);

}  // namespace holdfast::config
