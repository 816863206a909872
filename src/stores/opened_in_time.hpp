#pragma once

#include "holdfast/open.hpp"

namespace holdfast::stores {

/// Opens `url` on a thread of its own, and waits for that as `options` say.
[[nodiscard]] Result<std::unique_ptr<Store>> opened_in_time(std::string_view url, const OpenOptions& options);

}  // namespace holdfast::stores
