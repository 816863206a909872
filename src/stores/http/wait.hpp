#pragma once

#include "stores/common/wake_hub.hpp"
#include "stores/http/server.hpp"

#include <memory>

namespace holdfast::stores::http {

/// The source for the hub of a Store object: the daemon looks, and answers when one of the watches fires.
///
/// With `confirms`, a lock that was handed on is looked at once more from here, so that its lease is counted from a
/// moment of this host. Both must outlive it.
[[nodiscard]] std::unique_ptr<WakeSource> make_wake_source(const Clock& clock, Server& server);

}  // namespace holdfast::stores::http
