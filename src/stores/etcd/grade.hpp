#pragma once

#include "base/grading.hpp"
#include "holdfast/store.hpp"
#include "stores/etcd/session.hpp"

namespace holdfast::stores::etcd {

/// What a cluster promises.
[[nodiscard]] Result<base::Grading> grading_of(Cluster& cluster, CallBudget& budget);

/// Every node, and what they are to each other.
[[nodiscard]] std::vector<Finding> examine_cluster(Session& session, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::etcd
