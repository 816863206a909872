#pragma once

#include "holdfast/store.hpp"
#include "stores/file/folder.hpp"

#include <string>
#include <vector>

namespace holdfast::stores::file {

/// What a store at `path` can promise, by the file system that it is or would be on.
struct Promise {
    std::string file_system{};  ///< `nfs`, `tmpfs`...; `a local disk` for all that need no word of warning.
    Grade grade = Grade::a;
    std::vector<std::string> reasons{};
};

[[nodiscard]] Promise promise_of(const std::string& path, Sync sync);

}  // namespace holdfast::stores::file
