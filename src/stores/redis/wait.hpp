#pragma once

#include "stores/common/lock_cache.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/redis/optimistic.hpp"
#include "stores/redis/remote.hpp"

#include <memory>

namespace holdfast::stores::redis {

/// Listens on the channel of each watch's ticket or lease, or of its lock, and looks with the script.
///
/// A lock that was handed over is kept in `locks`, with the head of its queue, so that its release takes one round
/// trip. Both must outlive the source.
[[nodiscard]] std::unique_ptr<WakeSource> make_wake_source(Remote& remote, LockCache<KnownLock>& locks);

}  // namespace holdfast::stores::redis
