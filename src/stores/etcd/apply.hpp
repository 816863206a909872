#pragma once

#include "stores/etcd/optimistic.hpp"
#include "stores/etcd/remote.hpp"
#include "stores/etcd/wait_target.hpp"

namespace holdfast::stores::etcd {

/// The parts of a Store object that `apply_batch` uses and keeps up to date.
struct ApplyContext {
    const Clock& clock;
    Remote& remote;
    Optimistic& optimistic;
    WaitPredictions& wait_predictions;
};

/// Applies a batch, in as many transactions as it needs: each compares everything on which its decision depends. Tries
/// again until `deadline` if other clients were faster.
[[nodiscard]] Result<std::vector<Reply>> apply_batch(const ApplyContext& context, std::span<const Request> requests,
                                                     Deadline deadline);

}  // namespace holdfast::stores::etcd
