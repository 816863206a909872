#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::bench {

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
