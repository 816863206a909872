#pragma once

#include "holdfast/lease.hpp"

#include <string>

namespace holdfast::stores::redis {

/// The names of our keys. The braces make Redis Cluster keep all of them on one node, which a script needs. No key ever
/// has a time to live: only keys without one are safe from eviction.
///
/// Only locks.lua uses the keys of a lock's queue: `queue:NAME` and `alive:NAME`, sorted sets of ticket ids by their
/// number and by the time when they run out, and `tickets:NAME`, a hash.
class Keys {
public:
    explicit Keys(const std::string& prefix) : root_("{" + prefix + "}:") {}

    /// A hash: the format, the store_id, and `used` once there has been a lock.
    [[nodiscard]] std::string store() const { return root_ + "store"; }
    /// Sorted sets of names, for lists: all, those that are held, and all by the time of their newest event.
    [[nodiscard]] std::string names() const { return root_ + "names"; }
    [[nodiscard]] std::string held() const { return root_ + "held"; }
    [[nodiscard]] std::string changed() const { return root_ + "changed"; }

    /// A string: a version, which every change replaces, and the record. Also the channel on which changes are
    /// announced.
    [[nodiscard]] std::string lock(const LockName& name) const { return root_ + "lock:" + name.text(); }
    /// A list of events, oldest first.
    [[nodiscard]] std::string audit(const LockName& name) const { return root_ + "audit:" + name.text(); }

    /// The channel that tells the owner of a ticket that its turn may have come, and the holder of a lease that
    /// somebody has ended it.
    [[nodiscard]] std::string turn(const LockId& called) const { return root_ + "turn:" + called.text(); }

private:
    std::string root_;
};

}  // namespace holdfast::stores::redis
