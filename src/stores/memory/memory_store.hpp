#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>

namespace holdfast::stores {

[[nodiscard]] Result<std::unique_ptr<Store>> open_memory_store(base::Url url, const Clock& clock);

}  // namespace holdfast::stores
