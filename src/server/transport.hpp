#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include <functional>
#include <memory>
#include <span>

namespace holdfast::server {

namespace asio = boost::asio;

/// The bytes of a connection, with or without TLS. At most one read and one write at a time.
class Transport {
public:
    using Handler = std::function<void(boost::system::error_code error, std::size_t bytes)>;

    virtual ~Transport() = default;
    virtual void handshake(Handler done) = 0;
    virtual void read(asio::mutable_buffer into, Handler done) = 0;
    /// The bytes stay where they are until it is done; the span need not.
    virtual void write(std::span<const asio::const_buffer> from, Handler done) = 0;
    /// Only while no write is under way. How much was taken without waiting; 0 also where that cannot be known.
    [[nodiscard]] virtual std::size_t write_now(std::span<const asio::const_buffer> from) = 0;
    /// The client sees the end of what was written.
    virtual void end_output() = 0;
    /// What is under way ends with an error.
    virtual void close() = 0;
};

[[nodiscard]] std::unique_ptr<Transport> plain_transport(asio::ip::tcp::socket socket);
[[nodiscard]] std::unique_ptr<Transport> tls_transport(asio::ip::tcp::socket socket, asio::ssl::context& context);

}  // namespace holdfast::server
