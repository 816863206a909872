#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

namespace holdfast::stores {

/// `http://127.0.0.1:7420` or `https://[token@]host[:port][/path]`: the store of a daemon. Refused with
/// `store_unavailable` unless it answers, and with `denied` if it does not know the token.
[[nodiscard]] Result<std::unique_ptr<Store>> open_http_store(base::Url url, const Clock& clock);

/// Empty: the daemon's store has the schema.
[[nodiscard]] std::string_view http_schema();

}  // namespace holdfast::stores
