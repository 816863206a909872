#pragma once

#include "holdfast/error.hpp"

#include <string>
#include <string_view>

namespace holdfast::base {

/// `errno_value` in words, in English whatever the locale.
[[nodiscard]] std::string os_message(int errno_value);

/// An operating system call that failed before anything was changed: `denied` where permissions are the
/// reason, `store_unsafe` for a symbolic link, `store_unavailable` otherwise.
///
/// `doing` completes "cannot …": `write /var/lib/x/record`.
[[nodiscard]] Error os_error(int errno_value, std::string_view doing);

}  // namespace holdfast::base
