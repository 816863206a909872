#include "server/transport.hpp"

#include <boost/asio/ssl/stream.hpp>

#include <utility>
#include <vector>

namespace holdfast::server {
namespace {

using asio::ip::tcp;

void close_socket(tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.close(ignored);
}

class Plain final : public Transport {
public:
    explicit Plain(tcp::socket socket) : socket_(std::move(socket)) {
        boost::system::error_code ignored;
        socket_.non_blocking(true, ignored);
        takes_now_ = !ignored;
    }

    void handshake(Handler done) override {
        asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
    }
    void read(asio::mutable_buffer into, Handler done) override { socket_.async_read_some(into, std::move(done)); }
    void write(std::span<const asio::const_buffer> from, Handler done) override {
        // Asio copies the sequence and not what it refers to, and looks at it again when the socket has room.
        from_.assign(from.begin(), from.end());
        socket_.async_write_some(std::span<const asio::const_buffer>(from_), std::move(done));
    }
    [[nodiscard]] std::size_t write_now(std::span<const asio::const_buffer> from) override {
        // An error is not lost: the next `write` has it, too.
        boost::system::error_code ignored;
        return takes_now_ ? socket_.write_some(from, ignored) : 0;
    }
    void end_output() override {
        boost::system::error_code ignored;
        socket_.shutdown(tcp::socket::shutdown_send, ignored);
    }
    void close() override { close_socket(socket_); }

private:
    tcp::socket socket_;
    std::vector<asio::const_buffer> from_{};  ///< What is being written.
    bool takes_now_ = false;
};

class Tls final : public Transport {
public:
    Tls(tcp::socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}

    void handshake(Handler done) override {
        stream_.async_handshake(asio::ssl::stream_base::server,
                                [done = std::move(done)](boost::system::error_code error) { done(error, 0); });
    }
    void read(asio::mutable_buffer into, Handler done) override { stream_.async_read_some(into, std::move(done)); }
    void write(std::span<const asio::const_buffer> from, Handler done) override {
        // A TLS stream sends one buffer at a time.
        stream_.async_write_some(from.front(), std::move(done));
    }
    [[nodiscard]] std::size_t write_now(std::span<const asio::const_buffer> /*from*/) override { return 0; }
    void end_output() override {
        boost::system::error_code ignored;
        stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
    }
    void close() override { close_socket(stream_.next_layer()); }

private:
    asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(tcp::socket socket) { return std::make_unique<Plain>(std::move(socket)); }

std::unique_ptr<Transport> tls_transport(tcp::socket socket, asio::ssl::context& context) {
    return std::make_unique<Tls>(std::move(socket), context);
}

}  // namespace holdfast::server
