#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::bench {

/// A connection to a server on this host. What goes wrong ends the benchmark.
class Socket {
public:
    explicit Socket(std::uint16_t port);
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket();

    [[nodiscard]] int fd() const { return fd_; }
    void send(std::string_view text) const;
    /// Adds what has come to `into`; waits for it.
    void receive(std::string& into) const;

private:
    const int fd_;
};

/// A request to a daemon.
[[nodiscard]] std::string http_post(std::string_view path, std::string_view body);
/// The size of the first answer in `received`, 0 while it is not complete. Ends the benchmark if it is a refusal.
[[nodiscard]] std::size_t http_answer_size(std::string_view received);

/// What is said to a server, and how an answer is told from its beginning. The same load is put on a daemon and on what
/// people would use instead, so that no client library makes a difference.
struct Dialect {
    /// Sent first on each connection, and answered. Empty: nothing is.
    std::string greeting{};
    /// The request that takes (`gives_back` false) or gives back the locks of this step.
    std::function<std::string(int connection, int step, bool gives_back)> request;
    /// The size of the first answer in `received`, 0 while it is not complete. Ends the benchmark if it is a refusal.
    std::function<std::size_t(std::string_view received)> answer_size;
    int locks_per_step = 1;
};

/// Locks that are taken and given back in a second over so many connections, by one thread. Each connection waits for
/// the answer before it sends the next request.
[[nodiscard]] double pairs_over_sockets(std::uint16_t port, int connections, const Dialect& dialect,
                                        std::chrono::milliseconds time);

/// SET NX PX and a comparison before the deletion: the lock that people write for Redis.
[[nodiscard]] Dialect raw_redis(const std::string& password);
/// `/v1/acquire` and `/v1/release` of a daemon; with more than one lock in a step `/v1/batch`.
[[nodiscard]] Dialect daemon_api(int locks_per_step = 1);

}  // namespace holdfast::bench
