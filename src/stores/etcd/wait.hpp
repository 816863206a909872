#pragma once

#include "stores/common/wake_hub.hpp"
#include "stores/etcd/optimistic.hpp"
#include "stores/etcd/wait_target.hpp"

#include <memory>

namespace holdfast::stores::etcd {

/// etcd's source for the hub of a Store object. Watches one key for each waiter: the ticket before its own, or the
/// record.
///
/// A lock that was handed over is kept in `optimistic`, with the next ticket, so that its release takes one round trip.
/// All arguments must outlive it.
[[nodiscard]] std::unique_ptr<WakeSource> make_wake_source(const Clock& clock, Remote& remote,
                                                           WaitPredictions& predictions, Optimistic& optimistic);

}  // namespace holdfast::stores::etcd
