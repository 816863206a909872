#pragma once

#include <string_view>

namespace holdfast::base {

/// True for `localhost` and for addresses that never leave this host. A name that only looks like such an address
/// (`127.db.example`) can be anywhere.
[[nodiscard]] bool is_loopback(std::string_view host);

}  // namespace holdfast::base
