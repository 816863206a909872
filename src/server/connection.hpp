#pragma once

#include "server/serve.hpp"
#include "server/transport.hpp"

#include <functional>
#include <memory>
#include <string>

namespace holdfast::server {

class Exchange;

/// What a connection needs of the daemon. Everything outlives it.
struct ConnectionHost {
    asio::io_context& context;
    const Limits& limits;
    const Clock& clock;
    bool is_tls = false;
    std::function<void(const std::shared_ptr<Exchange>& exchange)> dispatch;
    /// An exchange was answered, after so long.
    std::function<void(const Exchange& exchange, int status, std::chrono::microseconds time)> answered;
};

/// One client: reads its requests one after the other and writes the answers in that order.
class Connection {
public:
    virtual ~Connection() = default;
    /// Ends it as soon as no answer is under way.
    virtual void stop() = 0;
    /// Ends it now.
    virtual void abort() = 0;
};

/// Serves the client until it ends, and calls `ended` then. On the loop's thread.
[[nodiscard]] std::shared_ptr<Connection> start_connection(const ConnectionHost& host,
                                                           std::unique_ptr<Transport> transport, std::string peer,
                                                           std::function<void()> ended);

}  // namespace holdfast::server
