#pragma once

#include "base/fd.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace holdfast::tests {

/// One request, as it came.
struct HttpAsked {
    std::string head{};  ///< From the method to the empty line.
    std::string body{};

    [[nodiscard]] bool is_for(std::string_view path) const {
        const auto begin = head.find(' ') + 1;
        return std::string_view(head).substr(begin).starts_with(path);
    }
    [[nodiscard]] std::string header(std::string_view name) const {
        const std::string wanted = "\r\n" + std::string(name) + ": ";
        const auto at = head.find(wanted);
        if (at == std::string::npos) return "";
        const auto begin = at + wanted.size();
        return head.substr(begin, head.find("\r\n", begin) - begin);
    }
};

/// Answers HTTP as the test says, on loopback: what a daemon never says, and what something says that is none.
class HttpActor {
public:
    /// The bytes of the answer. After an empty text the connection ends.
    using Answer = std::function<std::string(const HttpAsked&)>;

    explicit HttpActor(Answer answer) : answer_(std::move(answer)), listening_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        if (bind(listening_.get(), any, size) != 0 || listen(listening_.get(), 64) != 0 ||
            getsockname(listening_.get(), any, &size) != 0)
            throw std::runtime_error("no port for a test");
        port_ = ntohs(address.sin_port);
        thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// How many requests came for paths that begin so.
    [[nodiscard]] int count(std::string_view path) const {
        const std::scoped_lock lock(mutex_);
        int found = 0;
        for (const HttpAsked& one : asked_) found += one.is_for(path) ? 1 : 0;
        return found;
    }
    [[nodiscard]] std::vector<HttpAsked> asked(std::string_view path) const {
        const std::scoped_lock lock(mutex_);
        std::vector<HttpAsked> found;
        for (const HttpAsked& one : asked_)
            if (one.is_for(path)) found.push_back(one);
        return found;
    }

    [[nodiscard]] static std::string reply(int status, std::string_view body, std::string_view headers = "") {
        return "HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" + std::string(headers) +
               "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
    }

private:
    struct Link {
        base::Fd fd;
        std::string received{};
    };

    void work(const std::stop_token& stop) {
        std::vector<Link> links;
        while (!stop.stop_requested()) {
            std::vector<pollfd> fds{{listening_.get(), POLLIN, 0}};
            for (const Link& link : links) fds.push_back({link.fd.get(), POLLIN, 0});
            poll(fds.data(), fds.size(), 50);
            for (std::size_t i = links.size(); i > 0; --i)
                if (fds[i].revents != 0 && !serve(links[i - 1]))
                    links.erase(links.begin() + static_cast<std::ptrdiff_t>(i - 1));
            if (fds[0].revents != 0) links.push_back({base::Fd(accept(listening_.get(), nullptr, nullptr)), {}});
        }
    }

    /// False when the connection has ended.
    bool serve(Link& link) {
        std::array<char, 65536> buffer{};
        const ssize_t got = read(link.fd.get(), buffer.data(), buffer.size());
        if (got <= 0) return false;
        link.received.append(buffer.data(), static_cast<std::size_t>(got));
        const auto end = link.received.find("\r\n\r\n");
        if (end == std::string::npos) return true;
        HttpAsked asked{.head = link.received.substr(0, end + 4)};
        const std::string length = asked.header("Content-Length");
        const std::size_t size = length.empty() ? 0 : std::stoul(length);
        if (link.received.size() < end + 4 + size) return true;
        asked.body = link.received.substr(end + 4, size);
        link.received.erase(0, end + 4 + size);
        {
            const std::scoped_lock lock(mutex_);
            asked_.push_back(asked);
        }
        const std::string text = answer_(asked);
        if (text.empty()) return false;
        for (std::size_t sent = 0; sent < text.size();) {
            const ssize_t now = send(link.fd.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
            if (now <= 0) return false;
            sent += static_cast<std::size_t>(now);
        }
        return true;
    }

    const Answer answer_;
    const base::Fd listening_;
    std::uint16_t port_ = 0;
    mutable std::mutex mutex_;
    std::vector<HttpAsked> asked_{};  ///< Guarded by mutex_.
    std::jthread thread_{};           ///< Last, so that it ends before what it uses.
};

}  // namespace holdfast::tests
