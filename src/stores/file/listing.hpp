#pragma once

#include "holdfast/clock.hpp"
#include "stores/file/folder.hpp"

#include <string>
#include <vector>

namespace holdfast::stores::file {

/// Which locks are asked for, by their names.
struct NameRange {
    std::string prefix{};
    std::string after{};  ///< Only names behind this one.
};

/// The folders of these locks, in the order of the locks' names. Only where a folder's name does not say that of
/// its lock the record is read, so that whoever wants the first few reads few.
[[nodiscard]] Result<std::vector<std::string>> folders_of(const Folder& locks, const NameRange& range,
                                                          const Clock& clock, Deadline deadline);

/// What is said when the time is over before all was read.
[[nodiscard]] Error out_of_time();

}  // namespace holdfast::stores::file
