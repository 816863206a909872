#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

namespace holdfast::stores {

/// `redis://[user:password@]host:port/db` or `rediss://…`, over TLS. Connects: an unreachable server is
/// `store_unavailable`, a wrong password `denied`. The parameters are in docs/reference/stores.md.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redis_store(base::Url url, const Clock& clock);

/// The script that the server runs.
[[nodiscard]] std::string_view redis_schema();

}  // namespace holdfast::stores
