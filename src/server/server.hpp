#pragma once

#include "server/connection.hpp"
#include "server/loop.hpp"
#include "server/observer.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

namespace holdfast::server {

/// Refused with `usage`, unless it is ADDRESS:PORT.
[[nodiscard]] Result<void> check_address(const std::string& address);

/// The loop of `context`.
[[nodiscard]] std::unique_ptr<Loop> asio_loop(asio::io_context& context);

/// Accepts connections. Only on the loop's thread.
class Listener {
public:
    Listener(const ConnectionHost& host, ServerObserver& observer) : host_(host), observer_(observer) {}

    /// Listens at `address`, such as `127.0.0.1:7420` or `[::1]:0`. With TLS if `tls` is there.
    [[nodiscard]] Result<void> open(const std::string& address, asio::ssl::context* tls);
    /// The same on a socket that listens already, and that it closes.
    [[nodiscard]] Result<void> adopt(int socket, asio::ssl::context* tls);
    [[nodiscard]] std::uint16_t port() const { return port_; }

    /// Accepts no more, and ends each connection as soon as its answer was sent.
    void stop();
    void abort_all();
    [[nodiscard]] bool is_empty() const { return connections_.empty(); }

private:
    void accept();
    void take(asio::ip::tcp::socket socket);

    const ConnectionHost& host_;
    ServerObserver& observer_;
    std::optional<asio::ip::tcp::acceptor> acceptor_{};
    std::optional<asio::steady_timer> pause_{};
    asio::ssl::context* tls_ = nullptr;
    std::uint16_t port_ = 0;
    std::uint64_t last_id_ = 0;
    std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> connections_{};
};

/// TLS 1.2 and newer. Refused with `config` where a file cannot be used.
[[nodiscard]] Result<std::unique_ptr<asio::ssl::context>> tls_context(const std::string& cert, const std::string& key);

}  // namespace holdfast::server
