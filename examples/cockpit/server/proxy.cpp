#include "proxy.hpp"

#include "json.hpp"

#include <boost/json/serialize.hpp>

#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cockpit {
namespace {

class Socket {
public:
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    [[nodiscard]] int descriptor() const { return descriptor_; }

private:
    int descriptor_;
};

bool connect_to(int descriptor, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool send_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

/// Only what the daemon should hear of a browser. Header values have no line ends, or Beast had refused them.
std::string head_of(const Request& request, std::uint16_t daemon, const std::string& token) {
    std::string head = request.method + " " + request.target +
                       " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(daemon) + "\r\nAuthorization: Bearer " + token +
                       "\r\nConnection: close\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    for (const char* const name : {"accept", "last-event-id", "holdfast-lock", "holdfast-token", "holdfast-before"})
        if (const std::string value = request.header(name); !value.empty())
            head += std::string(name) + ": " + value + "\r\n";
    return head + "\r\n";
}

Response failed(holdfast::Errc code, const std::string& message) {
    Response response;
    response.status = holdfast::row_of(code).http_status;
    response.body = boost::json::serialize(document_of(holdfast::Error{code, message}));
    return response;
}

}  // namespace

std::optional<Response> Proxy::relay(const Request& request, const std::string& token, int socket) const {
    const Socket daemon(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (daemon.descriptor() < 0 || !connect_to(daemon.descriptor(), daemon_))
        return failed(holdfast::Errc::store_unavailable, "the lock service does not answer; nothing was changed");
    if (!send_all(daemon.descriptor(), head_of(request, daemon_, token) + request.body))
        return failed(holdfast::Errc::outcome_unknown, "the lock service went away while it was asked");

    bool has_answered = false;
    std::array<char, 16384> bytes{};
    while (true) {
        // The browser says nothing more; that it can be read means that it has gone.
        std::array<pollfd, 2> watched{{{daemon.descriptor(), POLLIN, 0}, {socket, POLLIN | POLLRDHUP, 0}}};
        if (::poll(watched.data(), watched.size(), -1) < 0) continue;
        if (watched[0].revents != 0) {
            const auto got = ::recv(daemon.descriptor(), bytes.data(), bytes.size(), 0);
            if (got <= 0) break;
            has_answered = true;
            if (!send_all(socket, {bytes.data(), static_cast<std::size_t>(got)})) return std::nullopt;
        } else if (watched[1].revents != 0) {
            return std::nullopt;
        }
    }
    if (has_answered) return std::nullopt;
    return failed(holdfast::Errc::outcome_unknown, "the lock service did not answer; nobody knows what it did");
}

}  // namespace cockpit
