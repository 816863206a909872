#pragma once

#include "holdfast/clock.hpp"
#include "stores/file/folder.hpp"

#include <string>
#include <vector>

namespace holdfast::stores::file {

/// Which locks are asked for, by their names.
struct NameRange {
    std::string prefix{};
    std::string after{};  ///< Only names after this one.
};

/// The folders of these locks, in the order of the locks' names. A record is read only where the folder's name does not
/// give the name of its lock, so that a query for the first few reads few.
[[nodiscard]] Result<std::vector<std::string>> folders_of(const Folder& locks, const NameRange& range,
                                                          const Clock& clock, Deadline deadline);

/// The error for a deadline that has passed before everything was read.
[[nodiscard]] Error out_of_time();

}  // namespace holdfast::stores::file
