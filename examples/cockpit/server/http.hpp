#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A small HTTP server: a thread for each connection. Enough for a sample that a few browsers use.
namespace cockpit {

struct Request {
    std::string method{};
    std::string target{};                          ///< As it was sent: path and query.
    std::string path{};                            ///< Not decoded: what this server knows has nothing to decode.
    std::map<std::string, std::string> query{};    ///< Values as they were sent, for the same reason.
    std::map<std::string, std::string> headers{};  ///< The names in lower case.
    std::string body{};

    [[nodiscard]] std::string header(const std::string& name) const {
        const auto found = headers.find(name);
        return found == headers.end() ? "" : found->second;
    }
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    std::string body{};
    std::vector<std::pair<std::string, std::string>> headers{};
};

class HttpServer {
public:
    using Answer = std::function<Response(const Request&)>;
    /// Answers on the connection itself, which is closed afterwards. False: it is a request for `Answer`.
    using Relay = std::function<std::optional<Response>(const Request&, int socket)>;

    /// Listens on the loopback. 0: on a free port.
    HttpServer(std::uint16_t port, Answer answer, Relay relay);
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    ~HttpServer();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// Serves until `stop`.
    void run();
    /// From another thread.
    void stop();

private:
    struct Connection;
    void serve(Connection& connection);
    [[nodiscard]] Response answer_to(const Request& request) const;
    void join_ended();

    Answer answer_;
    Relay relay_;
    boost::asio::io_context context_{};
    boost::asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_;

    std::mutex mutex_;  ///< Guards what follows.
    std::vector<std::unique_ptr<Connection>> connections_{};
    bool stopped_ = false;
};

}  // namespace cockpit
