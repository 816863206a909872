#pragma once

#include <span>

namespace holdfast::cli {

/// Overwrites in place what everybody on this host could read in the process list: passwords in URLs, and lease keys.
/// For a moment they were there; a secret that must not be seen even then belongs into the environment or a file.
void hide_secrets(std::span<char* const> arguments);

}  // namespace holdfast::cli
