#include "stores/redis/stream.hpp"

#include "base/os_error.hpp"

#include <array>
#include <cerrno>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace holdfast::stores::redis {
namespace {

using Sent = std::expected<void, std::string>;
using Count = std::expected<std::size_t, std::string>;

constexpr std::string_view too_late = "it does not answer in time";
constexpr std::size_t buffer_size = std::size_t{16} << 10U;

/// Empty when the socket is ready, or has failed: the next call on it returns the error.
Sent await(int fd, short what, const base::CallBudget& budget) {
    pollfd waiting{fd, what, 0};
    while (true) {
        const int ready = poll(&waiting, 1, budget.left_ms());
        if (ready > 0) return {};
        if (ready == 0) return std::unexpected(std::string(too_late));
        if (errno != EINTR) return std::unexpected(base::os_message(errno));
    }
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> resolve(const Address& address) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int status = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
    if (status != 0)
        return fail(Errc::store_unavailable,
                    "the address of " + address.place() + " is not found: " + gai_strerror(status));
    return Addresses(found, freeaddrinfo);
}

std::expected<base::Fd, std::string> connect_to(const addrinfo& where, const base::CallBudget& budget) {
    base::Fd fd(socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol));
    if (!fd) return std::unexpected(base::os_message(errno));
    if (connect(fd.get(), where.ai_addr, where.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return std::unexpected(base::os_message(errno));
        if (auto ready = await(fd.get(), POLLOUT, budget); !ready) return std::unexpected(ready.error());
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) return std::unexpected(base::os_message(error));
    }
    const auto set = [&](int level, int option, int value) {
        setsockopt(fd.get(), level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // A server that is gone without closing the connection is noticed within about ten seconds, also by a thread that
    // only listens.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    return fd;
}

}  // namespace

Result<Stream> Stream::open(const Address& address, const base::CallBudget& budget) {
    auto found = resolve(address);
    if (!found) return std::unexpected(found.error());
    std::string why = "it has no address";
    for (const addrinfo* where = found->get(); where != nullptr; where = where->ai_next) {
        auto fd = connect_to(*where, budget);
        if (!fd) {
            why = fd.error();
            continue;
        }
        Stream stream(std::move(*fd));
        if (address.tls == Tls::none) return stream;
        auto tls = TlsSession::client_of(address);
        if (!tls) return std::unexpected(tls.error());
        stream.tls_ = std::move(*tls);
        if (auto verified = stream.shake_hands(budget); verified)
            return stream;
        else
            why = verified.error();
    }
    return fail(Errc::store_unavailable, "Redis at " + address.place() + " is not reached: " + why);
}

Sent Stream::shake_hands(const base::CallBudget& budget) {
    std::array<char, buffer_size> buffer;
    while (true) {
        const auto need = tls_->shake_hands();
        // Also after a refusal, to send the alert that tells the server why.
        if (auto sent = send_all(tls_->take_output(), budget); !sent && need) return sent;
        if (!need) return std::unexpected(need.error());
        if (*need == TlsSession::Need::nothing) return {};
        if (*need == TlsSession::Need::closed) return std::unexpected("it hung up");
        if (auto ready = await(socket_.get(), POLLIN, budget); !ready) return ready;
        const auto count = receive(buffer);
        if (!count) return std::unexpected(count.error());
        tls_->feed(std::span(buffer).first(*count));
    }
}

Sent Stream::send_all(std::string_view bytes, const base::CallBudget& budget) const {
    while (!bytes.empty()) {
        const ssize_t count = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (auto ready = await(socket_.get(), POLLOUT, budget); !ready) return ready;
        } else if (errno != EINTR) {
            return std::unexpected(base::os_message(errno));
        }
    }
    return {};
}

/// Zero when nothing is there.
Count Stream::receive(std::span<char> into) const {
    while (true) {
        const ssize_t count = recv(socket_.get(), into.data(), into.size(), 0);
        if (count > 0) return static_cast<std::size_t>(count);
        if (count == 0) return std::unexpected("it hung up");
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno != EINTR) return std::unexpected(base::os_message(errno));
    }
}

Sent Stream::write(std::string_view bytes, const base::CallBudget& budget) {
    if (!tls_) return send_all(bytes, budget);
    if (auto sealed = tls_->write(bytes); !sealed) return sealed;
    return send_all(tls_->take_output(), budget);
}

Count Stream::read_now(std::span<char> into) {
    if (!tls_) return receive(into);
    std::array<char, buffer_size> buffer;
    while (true) {
        std::size_t count = 0;
        const auto need = tls_->read(into, count);
        if (!need) return std::unexpected(need.error());
        if (*need == TlsSession::Need::closed) return std::unexpected("it hung up");
        if (*need == TlsSession::Need::nothing) return count;
        const auto arrived = receive(buffer);
        if (!arrived || *arrived == 0) return arrived;
        tls_->feed(std::span(buffer).first(*arrived));
    }
}

Count Stream::read(std::span<char> into, const base::CallBudget& budget) {
    while (true) {
        // The answer to a request is seldom there at once, so on plain sockets wait first.
        if (!tls_) {
            if (auto ready = await(socket_.get(), POLLIN, budget); !ready) return std::unexpected(ready.error());
        }
        const auto count = read_now(into);
        if (!count || *count > 0) return count;
        if (auto ready = await(socket_.get(), POLLIN, budget); !ready) return std::unexpected(ready.error());
    }
}

bool Stream::is_quiet() const {
    char one = 0;
    const ssize_t count = recv(socket_.get(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace holdfast::stores::redis
