#pragma once

#include "base/url.hpp"
#include "holdfast/store.hpp"

#include <memory>
#include <string_view>

namespace holdfast::stores {

/// Connects, because only the server can say what the store promises.
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgres_store(base::Url url, const Clock& clock);

/// The DDL with which the first use creates the schema `holdfast`.
[[nodiscard]] std::string_view postgres_schema();

}  // namespace holdfast::stores
