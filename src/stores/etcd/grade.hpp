#pragma once

#include "base/grading.hpp"
#include "holdfast/store.hpp"
#include "stores/etcd/remote.hpp"

namespace holdfast::stores::etcd {

/// The grade of a cluster.
[[nodiscard]] Result<base::Grading> grading_of(Cluster& cluster, base::CallBudget& budget);

/// Findings about every node, and about the cluster.
[[nodiscard]] std::vector<Finding> examine_cluster(Remote& remote, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::etcd
