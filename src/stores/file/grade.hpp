#pragma once

#include "holdfast/store.hpp"
#include "stores/file/folder.hpp"

#include <string>
#include <vector>

namespace holdfast::stores::file {

/// What `doctor` shows of the store at `path`. Never writes.
[[nodiscard]] std::vector<Finding> examine_store(const std::string& path, Sync sync, const base::Promise& promise,
                                                 const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::file
