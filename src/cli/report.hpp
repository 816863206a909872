#pragma once

#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <optional>
#include <string>

namespace holdfast::cli {

/// What to do about an error of this kind, in words that can be typed.
[[nodiscard]] std::string hint_for(const Error& error);

/// What a command exits with when it was refused; `--if-held skip` and `--conflict-exit-code` count.
[[nodiscard]] int exit_status(const Error& error, const Settings& settings);

/// Tells people (standard error) or programs (one document on standard output) what went wrong.
void report(const Error& error, Output& out, const std::optional<StoreInfo>& store);

}  // namespace holdfast::cli
