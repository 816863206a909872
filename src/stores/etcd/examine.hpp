#pragma once

#include "holdfast/store.hpp"
#include "stores/etcd/session.hpp"

namespace holdfast::stores::etcd {

/// What a cluster promises.
struct Standing {
    Grade grade = Grade::a;
    std::vector<std::string> reasons{};
};
[[nodiscard]] Result<Standing> standing_of(Cluster& cluster, Patience& patience);

/// Every node, and what they are to each other.
[[nodiscard]] std::vector<Finding> examine_cluster(Session& session, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::etcd
