#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

namespace holdfast::stores {

/// `etcd://[user:password@]host:2379,host:2379/prefix`. Refused with `store_unavailable` unless one of the
/// endpoints answers.
[[nodiscard]] Result<std::unique_ptr<Store>> open_etcd_store(base::Url url, const Clock& clock);

/// Empty: keys need no schema.
[[nodiscard]] std::string_view etcd_schema();

}  // namespace holdfast::stores
