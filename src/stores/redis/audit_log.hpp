#pragma once

#include "holdfast/audit.hpp"
#include "stores/redis/remote.hpp"

#include <string>
#include <vector>

namespace holdfast::stores::redis {

/// Reads the list of one lock's events, oldest first. At its end events are added and at its beginning they are pruned,
/// both while it is read: so an event is identified by its number, not by its position in the list.
class AuditLog {
public:
    using Events = std::vector<AuditEvent>;

    AuditLog(Remote& remote, const LockName& name, Deadline deadline)
        : remote_(remote), name_(name), key_(remote.keys().audit(name)), deadline_(deadline) {}

    /// `count` is at least 1.
    [[nodiscard]] Result<Events> oldest(std::size_t count) { return range("0", std::to_string(count - 1)); }
    [[nodiscard]] Result<Events> newest(std::size_t count) { return range("-" + std::to_string(count), "-1"); }

    /// The event with the number `seq`, and up to so many on each side of it. Empty if it is not in the list; the whole
    /// list if numbers are missing, which only damage can cause.
    [[nodiscard]] Result<Events> around(std::uint64_t seq, std::size_t before, std::size_t behind);

private:
    [[nodiscard]] Result<Events> range(const std::string& from, const std::string& to);

    Remote& remote_;
    const LockName& name_;
    const std::string key_;
    const Deadline deadline_;
    std::optional<std::uint64_t> front_{};  ///< The number of the first event, when it was looked at last.
};

/// Adds to `traces` what the log of the lock shows, whatever can be read of it.
[[nodiscard]] Result<void> add_log(Remote& remote, const LockName& name, Deadline deadline, Traces& traces);

}  // namespace holdfast::stores::redis
