#pragma once

#include "holdfast/error.hpp"

#include <map>
#include <string>
#include <string_view>

namespace holdfast::base {

/// A store's address, split. `sqlite:///abs/file.db?sync=off` has the scheme `sqlite`, the place
/// `/abs/file.db` and one parameter; `sqlite:file.db` has the place `file.db`. For a server the place is
/// everything between `//` and `?`, as written.
struct Url {
    std::string scheme;
    std::string place;
    std::map<std::string, std::string> parameters;  ///< Percent-decoded.

    /// Refused with `usage`. The message never repeats the text, which may hold a password.
    [[nodiscard]] static Result<Url> parse(std::string_view text);

    /// Removes `name` and says whether it was `on` (default: `fallback`). Anything but `on` and `off` is `usage`.
    [[nodiscard]] Result<bool> take_switch(const std::string& name, bool fallback);

    /// `usage` if parameters are left that nobody took: a misspelt one must not be ignored.
    [[nodiscard]] Result<void> expect_no_parameters() const;

    /// For people: the scheme and the place, without what could be a password.
    [[nodiscard]] std::string redacted() const;
};

}  // namespace holdfast::base
