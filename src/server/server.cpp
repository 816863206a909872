#include "server/server.hpp"

#include "server/origin.hpp"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace holdfast::server {
namespace {

using asio::ip::tcp;

constexpr std::chrono::milliseconds pause_without_descriptors{100};
constexpr std::string_view full =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

class AsioLoop final : public Loop {
public:
    explicit AsioLoop(asio::io_context& context) : context_(context) {}

    void post(Work work) override { asio::post(context_, std::move(work)); }
    Timer after(std::chrono::milliseconds time, Work work) override {
        auto timer = std::make_shared<asio::steady_timer>(context_, time);
        timer->async_wait([work = std::move(work)](boost::system::error_code error) mutable {
            if (!error) work();
        });
        return timer;
    }

private:
    asio::io_context& context_;
};

Result<tcp::endpoint> endpoint_of(const std::string& address) {
    const auto colon = address.rfind(':');
    const std::string host(host_of(address));
    unsigned port = 0;
    const char* const begin = address.data() + (colon == std::string::npos ? address.size() : colon + 1);
    const char* const end = address.data() + address.size();
    const auto [stop, bad_port] = std::from_chars(begin, end, port);
    if (bad_port != std::errc{} || stop != end || port > 65535)
        return fail(Errc::usage, fmt::format("\"{}\" is not ADDRESS:PORT, such as 127.0.0.1:7420", address));
    boost::system::error_code error;
    const auto ip = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
    if (error) return fail(Errc::usage, fmt::format("\"{}\" is no IP address", host));
    return tcp::endpoint(ip, static_cast<std::uint16_t>(port));
}

}  // namespace

Result<void> check_address(const std::string& address) {
    const auto endpoint = endpoint_of(address);
    if (!endpoint) return std::unexpected(endpoint.error());
    return {};
}

std::unique_ptr<Loop> asio_loop(asio::io_context& context) { return std::make_unique<AsioLoop>(context); }

Result<void> Listener::open(const std::string& address, asio::ssl::context* tls) {
    const auto endpoint = endpoint_of(address);
    if (!endpoint) return std::unexpected(endpoint.error());
    tls_ = tls;
    acceptor_.emplace(host_.context);
    pause_.emplace(host_.context);
    boost::system::error_code error;
    acceptor_->open(endpoint->protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(*endpoint, error);
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error) return fail(Errc::store_unavailable, fmt::format("cannot listen on {}: {}", address, error.message()));
    port_ = acceptor_->local_endpoint().port();
    accept();
    return {};
}

Result<void> Listener::adopt(int socket, asio::ssl::context* tls) {
    tls_ = tls;
    acceptor_.emplace(host_.context);
    pause_.emplace(host_.context);
    boost::system::error_code error;
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    acceptor_->assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), socket, error);
    if (error) return fail(Errc::config, "the socket of the service manager cannot be used: " + error.message());
    port_ = acceptor_->local_endpoint().port();
    accept();
    return {};
}

void Listener::accept() {
    acceptor_->async_accept([this](boost::system::error_code error, tcp::socket socket) {
        if (!acceptor_->is_open()) return;
        if (!error) {
            take(std::move(socket));
            return accept();
        }
        // Without descriptors every attempt fails at once, until a connection ends.
        pause_->expires_after(pause_without_descriptors);
        pause_->async_wait([this](boost::system::error_code stopped) {
            if (!stopped && acceptor_->is_open()) accept();
        });
    });
}

void Listener::take(tcp::socket socket) {
    boost::system::error_code error;
    if (connections_.size() >= host_.limits.connections) {
        socket.non_blocking(true, error);
        if (tls_ == nullptr) socket.write_some(asio::buffer(full), error);
        return;
    }
    socket.set_option(tcp::no_delay(true), error);
    const auto peer = socket.remote_endpoint(error);
    if (error) return;
    const std::uint64_t id = ++last_id_;
    auto transport = tls_ ? tls_transport(std::move(socket), *tls_) : plain_transport(std::move(socket));
    auto connection = start_connection(host_, std::move(transport), peer.address().to_string(), [this, id] {
        connections_.erase(id);
        observer_.connections(connections_.size());
    });
    connections_.emplace(id, std::move(connection));
    observer_.connections(connections_.size());
}

void Listener::stop() {
    boost::system::error_code ignored;
    acceptor_->close(ignored);
    pause_->cancel();
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [id, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->stop();
}

void Listener::abort_all() {
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [id, connection] : connections_) all.push_back(connection);
    for (const auto& connection : all) connection->abort();
}

Result<std::unique_ptr<asio::ssl::context>> tls_context(const std::string& cert, const std::string& key) {
    auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    boost::system::error_code error;
    context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                             asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                             asio::ssl::context::no_tlsv1_1,
                         error);
    if (!error) context->use_certificate_chain_file(cert, error);
    if (error) return fail(Errc::config, fmt::format("--tls-cert {}: {}", cert, error.message()));
    context->use_private_key_file(key, asio::ssl::context::pem, error);
    if (error) return fail(Errc::config, fmt::format("--tls-key {}: {}", key, error.message()));
    return context;
}

}  // namespace holdfast::server
