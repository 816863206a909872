#pragma once

#include "holdfast/error.hpp"

#include <string>

namespace holdfast::config {

/// Why a file is read: it was named, or found by the search upward from the working directory.
enum class Chosen {
    by_name,
    /// Any user that can write to a folder above the working directory could have put it there. So it must be a regular
    /// file that belongs to the user or to root, and that nobody else can write; so must each symbolic link that leads
    /// to it.
    by_search,
};

/// The whole file, at most 1 MiB. Refused with `config`, and never waits: neither for a named pipe nor for a device.
/// All checks are made on the file that was opened, whatever its name stands for a moment later.
[[nodiscard]] Result<std::string> read_config_file(const std::string& path, Chosen chosen);

}  // namespace holdfast::config
