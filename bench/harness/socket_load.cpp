#include "harness/socket_load.hpp"

#include "harness/programs.hpp"
#include "holdfast/lease.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace holdfast::bench {
namespace {

using std::chrono::steady_clock;

class Link {
public:
    Link(std::uint16_t port, int number, const Dialect& dialect) : number_(number), dialect_(dialect), socket_(port) {
        if (!dialect_.greeting.empty()) {
            socket_.send(dialect_.greeting);
            while (!take_answer()) socket_.receive(received_);
        }
    }

    [[nodiscard]] int fd() const { return socket_.fd(); }
    void ask() { socket_.send(dialect_.request(number_, step_, gives_back_)); }

    /// The locks that were given back by what can be read now. Asks for the next while there is time.
    int go_on(bool may_take) {
        socket_.receive(received_);
        if (!take_answer()) return 0;
        const int done = gives_back_ ? dialect_.locks_per_step : 0;
        if (gives_back_) ++step_;
        gives_back_ = !gives_back_;
        if (gives_back_ || may_take)
            ask();
        else
            is_over_ = true;
        return done;
    }
    [[nodiscard]] bool is_over() const { return is_over_; }
    /// Later rounds use names of their own.
    void begin(int step) {
        step_ = step;
        is_over_ = false;
        ask();
    }
    [[nodiscard]] int step() const { return step_; }

private:
    bool take_answer() {
        const std::size_t size = dialect_.answer_size(received_);
        received_.erase(0, size);
        return size > 0;
    }

    const int number_;
    const Dialect& dialect_;
    const Socket socket_;
    std::string received_{};
    int step_ = 0;
    bool gives_back_ = false;
    bool is_over_ = false;
};

}  // namespace

Socket::Socket(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("cannot connect");
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket::~Socket() { close(fd_); }

void Socket::send(std::string_view text) const {
    while (!text.empty()) {
        const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0) give_up("a connection broke");
        text.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void Socket::receive(std::string& into) const {
    std::array<char, 1 << 16> buffer{};
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got <= 0) give_up("a connection was closed");
    into.append(buffer.data(), static_cast<std::size_t>(got));
}

std::string http_post(std::string_view path, std::string_view body) {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", path,
        body.size(), body);
}

std::size_t http_answer_size(std::string_view received) {
    constexpr std::string_view length_field = "Content-Length: ";
    const auto end = received.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    if (!received.starts_with("HTTP/1.1 200")) give_up(std::string(received.substr(0, 400)));
    const auto at = received.find(length_field);
    std::size_t length = 0;
    if (at > end) give_up("an answer without a length");
    std::from_chars(received.data() + at + length_field.size(), received.data() + end, length);
    const std::size_t size = end + 4 + length;
    if (received.size() < size) return 0;
    if (received.substr(0, size).find(R"("error":{)") != std::string_view::npos)
        give_up(std::string(received.substr(end + 4, 400)));
    return size;
}

double pairs_over_sockets(std::uint16_t port, int connections, const Dialect& dialect, std::chrono::milliseconds time) {
    std::vector<std::unique_ptr<Link>> links;
    for (int i = 0; i < connections; ++i) links.push_back(std::make_unique<Link>(port, i, dialect));
    std::vector<pollfd> fds;
    for (const auto& link : links) fds.push_back({link->fd(), POLLIN, 0});
    const auto begin = steady_clock::now();
    for (const auto& link : links) link->begin(0);
    long pairs = 0;
    for (std::size_t running = links.size(); running > 0;) {
        poll(fds.data(), fds.size(), -1);
        const bool may_take = steady_clock::now() - begin < time;
        for (std::size_t i = 0; i < links.size(); ++i) {
            if (fds[i].revents == 0) continue;
            pairs += links[i]->go_on(may_take);
            if (!links[i]->is_over()) continue;
            fds[i].fd = -1;
            --running;
        }
    }
    const std::chrono::duration<double> took = steady_clock::now() - begin;
    return static_cast<double>(pairs) / took.count();
}

Dialect raw_redis(const std::string& password) {
    const std::string run = LockId::random().text();
    const auto command = [](const std::vector<std::string>& words) {
        std::string text = fmt::format("*{}\r\n", words.size());
        for (const std::string& word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
        return text;
    };
    const std::string script =
        "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end";
    return {.greeting = command({"AUTH", password}),
            .request =
                [=](int connection, int step, bool gives_back) {
                    const std::string name = fmt::format("{}/{}/{}", run, connection, step);
                    return gives_back ? command({"EVAL", script, "1", name, run})
                                      : command({"SET", name, run, "NX", "PX", "30000"});
                },
            .answer_size =
                [](std::string_view received) {
                    const auto end = received.find("\r\n");
                    if (end == std::string_view::npos) return std::size_t{0};
                    if (received.starts_with('-') || received.starts_with("$-1") || received.starts_with(":0"))
                        give_up(std::string(received.substr(0, end)));
                    return end + 2;
                }};
}

Dialect daemon_api(int locks_per_step) {
    // One lease key for all: what is measured is not how fast random numbers are made.
    const std::string lease = Credentials::random().reveal();
    const std::string run = LockId::random().text();
    const auto one = [=](int connection, int step, int lock, bool gives_back) {
        const std::string name = fmt::format("{}/{}/{}/{}", run, connection, step, lock);
        if (gives_back) return fmt::format(R"("name":"{}","lease":"{}"}})", name, lease);
        return fmt::format(R"("name":"{}","lease":"{}","ttl_ms":30000,"holder":"bench"}})", name, lease);
    };
    return {.request =
                [=](int connection, int step, bool gives_back) {
                    const std::string_view op = gives_back ? "release" : "acquire";
                    if (locks_per_step == 1)
                        return http_post(fmt::format("/v1/{}", op), "{" + one(connection, step, 0, gives_back));
                    std::string body;
                    for (int lock = 0; lock < locks_per_step; ++lock)
                        body += fmt::format(R"({}{{"op":"{}",{})", lock == 0 ? "" : ",", op,
                                            one(connection, step, lock, gives_back));
                    return http_post("/v1/batch", fmt::format(R"({{"requests":[{}]}})", body));
                },
            .answer_size = http_answer_size,
            .locks_per_step = locks_per_step};
}

}  // namespace holdfast::bench
