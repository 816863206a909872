#pragma once

#include "cli/output.hpp"
#include "cli/settle.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <optional>
#include <string>

namespace holdfast::cli {

/// The flags of the command line that a suggested command must repeat: ` -s URL --config F`. Settings from the
/// environment or a file need not be repeated, and a URL that may hold a secret is left out.
[[nodiscard]] std::string repeated_flags(const Settings& settings);

/// What to do about an error of this kind, with the flags of this command line. Without settings no flag is repeated.
[[nodiscard]] std::string hint_for(const Error& error, const Settings* settings = nullptr);

/// What `--format sh` prints when there is no lease: it ends a script that evaluates it with `status`, and leaves an
/// interactive shell as it is.
[[nodiscard]] std::string exit_for_eval(int status);

/// What a command exits with when it was refused; `--if-held skip` and `--conflict-exit-code` count.
[[nodiscard]] int exit_status(const Error& error, const Settings& settings);

/// Says that a lock was left to its holder, as --if-held skip asks for: to a person, and not to cron.
void note_skipped(const Output& out, const Error& conflict);

/// Tells people (standard error) or programs (one document on standard output) what went wrong.
void report(const Error& error, Output& out, const std::optional<StoreInfo>& store, const Settings* settings = nullptr);

}  // namespace holdfast::cli
