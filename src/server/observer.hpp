#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

namespace holdfast::server {

/// Hears what the daemon does, for its figures. Called on the loop's thread, so it must not block.
class ServerObserver {
public:
    virtual ~ServerObserver() = default;

    /// An HTTP request was answered. `route` is the pattern, not the path that was sent.
    virtual void answered(std::string_view /*method*/, std::string_view /*route*/, int /*status*/,
                          std::chrono::microseconds /*time*/) {}
    /// A batch came back from the store: what was sent, and the answers or the error of the whole call.
    virtual void applied(std::span<const Request> /*requests*/, const Result<std::vector<Reply>>& /*replies*/,
                         std::chrono::microseconds /*time*/) {}
    /// A request waits for the next batch, or was refused because too many do.
    virtual void queued(std::size_t /*waiting*/) {}
    virtual void refused_at_queue() {}
    /// An event of a lock was read from the store, once. Only while somebody follows the events.
    virtual void happened(const AuditEvent& /*event*/) {}
    virtual void connections(std::size_t /*open*/) {}
    virtual void streams(std::size_t /*open*/) {}
    virtual void waiters(std::size_t /*held*/) {}
};

}  // namespace holdfast::server
