#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

namespace holdfast::stores {

[[nodiscard]] Result<std::unique_ptr<Store>> open_mysql_store(base::Url url, const Clock& clock);

/// The DDL with which the first use creates the tables.
[[nodiscard]] std::string_view mysql_schema();

}  // namespace holdfast::stores
