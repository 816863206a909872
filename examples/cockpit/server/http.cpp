#include "http.hpp"

#include <boost/asio/read.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <sys/socket.h>
#include <thread>

namespace cockpit {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::uint64_t largest_body = std::uint64_t{1} << 20;
constexpr std::uint64_t most_drained = 16 * largest_body;
constexpr std::size_t most_connections = 200;

/// Pages run no script and load nothing but what this server sends.
constexpr auto policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

std::map<std::string, std::string> query_in(std::string_view text) {
    std::map<std::string, std::string> query;
    while (!text.empty()) {
        const auto end = std::min(text.find('&'), text.size());
        const std::string_view pair = text.substr(0, end);
        const auto equals = std::min(pair.find('='), pair.size());
        query[std::string(pair.substr(0, equals))] = pair.substr(std::min(equals + 1, pair.size()));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return query;
}

Request request_of(const http::request<http::string_body>& message) {
    Request request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    const auto mark = std::min(request.target.find('?'), request.target.size());
    request.path = request.target.substr(0, mark);
    request.query = query_in(std::string_view(request.target).substr(std::min(mark + 1, request.target.size())));
    for (const auto& field : message) request.headers[lower(field.name_string())] = std::string(field.value());
    request.body = message.body();
    return request;
}

http::response<http::string_body> message_of(const Response& response, unsigned version, bool keep_alive) {
    http::response<http::string_body> message{static_cast<http::status>(response.status), version};
    message.set(http::field::content_type, response.content_type);
    message.set("Content-Security-Policy", policy);
    message.set("X-Content-Type-Options", "nosniff");
    message.set("Referrer-Policy", "no-referrer");
    message.set(http::field::cache_control, "no-store");
    for (const auto& [name, value] : response.headers) message.insert(name, value);
    message.body() = response.body;
    message.keep_alive(keep_alive);
    message.prepare_payload();
    return message;
}

Response too_long() {
    return {.status = 413, .body = R"({"error":{"code":"E_USAGE","message":"the request is too long"}})"};
}

/// Reads on for a moment: a connection that is closed on unread bytes takes the answer with it.
void drain(tcp::socket& socket) {
    std::array<char, 65536> bytes{};
    boost::system::error_code error;
    socket.shutdown(tcp::socket::shutdown_send, error);
    for (std::uint64_t left = most_drained; left > 0 && !error;)
        left -= std::min<std::uint64_t>(left, socket.read_some(asio::buffer(bytes), error));
}

}  // namespace

struct HttpServer::Connection {
    explicit Connection(tcp::socket accepted) : socket(std::move(accepted)) {}

    tcp::socket socket;
    bool has_ended = false;  ///< Guarded by the server's mutex.
    std::jthread thread{};
};

HttpServer::HttpServer(std::uint16_t port, Answer answer, Relay relay)
    : answer_(std::move(answer)),
      relay_(std::move(relay)),
      acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), port)),
      port_(acceptor_.local_endpoint().port()) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::run() {
    while (true) {
        boost::system::error_code error;
        tcp::socket socket = acceptor_.accept(error);
        const std::scoped_lock lock(mutex_);
        if (stopped_) break;
        if (error) continue;
        join_ended();
        if (connections_.size() >= most_connections) continue;  // Closes it.
        Connection& connection = *connections_.emplace_back(std::make_unique<Connection>(std::move(socket)));
        connection.thread = std::jthread([this, &connection] { serve(connection); });
    }
    // Nobody adds one any more, and each ends because its socket was shut down.
    for (const auto& connection : connections_) connection->thread.join();
}

void HttpServer::join_ended() {
    std::erase_if(connections_, [](const auto& connection) { return connection->has_ended; });
}

void HttpServer::stop() {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    // Wakes the thread in `accept`, which closing does not.
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    for (const auto& connection : connections_) ::shutdown(connection->socket.native_handle(), SHUT_RDWR);
}

Response HttpServer::answer_to(const Request& request) const {
    // One request that this server has not foreseen must not end all the others.
    try {
        return answer_(request);
    } catch (const std::exception&) {
        return {.status = 500, .body = R"({"error":{"code":"E_INTERNAL","message":"the sample failed here"}})"};
    }
}

void HttpServer::serve(Connection& connection) {
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    while (!error) {
        http::request_parser<http::string_body> parser;
        parser.body_limit(largest_body);
        http::read(connection.socket, buffer, parser, error);
        if (error == http::error::body_limit) {
            // Said, so that a page knows that nothing was changed. The rest of the body is not waited for.
            error = {};
            http::write(connection.socket, message_of(too_long(), 11, false), error);
            drain(connection.socket);
        }
        if (error || !parser.is_done()) break;
        const Request request = request_of(parser.get());
        if (request.path.starts_with("/v1/")) {
            const auto refused = relay_(request, connection.socket.native_handle());
            if (refused) http::write(connection.socket, message_of(*refused, 11, false), error);
            break;
        }
        const bool keep_alive = parser.get().keep_alive();
        http::write(connection.socket, message_of(answer_to(request), 11, keep_alive), error);
        if (!keep_alive) break;
    }
    ::shutdown(connection.socket.native_handle(), SHUT_RDWR);
    const std::scoped_lock lock(mutex_);
    connection.has_ended = true;
}

}  // namespace cockpit
