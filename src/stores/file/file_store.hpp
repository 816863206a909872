#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>

namespace holdfast::stores {

/// Leases in a folder, shared by the processes of one host: `file:DIR`, with `?sync=off` for speed without
/// the promise.
[[nodiscard]] Result<std::unique_ptr<Store>> open_file_store(base::Url url, const Clock& clock);

}  // namespace holdfast::stores
