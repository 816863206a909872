#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

namespace holdfast::stores {

[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite_store(base::Url url, const Clock& clock);

/// The DDL with which the first use creates the database.
[[nodiscard]] std::string_view sqlite_schema();

}  // namespace holdfast::stores
