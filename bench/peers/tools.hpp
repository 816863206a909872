#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

/// Peers that measure themselves: the benchmarks that come with the servers.
namespace holdfast::bench {

/// redis-benchmark with a script that takes a lock and counts its grants, the least that gives a fencing token. It
/// never gives a lock back.
class RedisBenchmark {
public:
    RedisBenchmark(std::uint16_t port, int connections, int threads);
    /// Calls per second. Each connection waits for an answer before it sends the next `pipeline` calls.
    [[nodiscard]] double calls_per_second(int pipeline = 1) const;

private:
    std::uint16_t port_;
    int connections_;
    int threads_;
    std::string script_;
};

/// pgbench with a lease row that is inserted and deleted, by prepared statements that commit by themselves.
class PgBench {
public:
    PgBench(std::uint16_t port, const std::filesystem::path& folder, int connections, int threads);
    [[nodiscard]] double pairs_per_second() const;

private:
    std::string database_;
    std::string script_;
    int connections_;
    int threads_;
};

}  // namespace holdfast::bench
