#include "peers/tools.hpp"

#include "harness/programs.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/redis_by_hand.hpp"

#include <fmt/format.h>

#include <fstream>

namespace holdfast::bench {
namespace {

constexpr std::string_view acquire_script =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
    "return redis.call('INCR', KEYS[1] .. ':token') end return 0";

constexpr std::string_view lease_row =
    "\\set id random(1, 1000000000000)\n"
    "INSERT INTO lease (name, holder, expires_at) VALUES ('lock/' || :id::text, 'me', 1800000000000);\n"
    "DELETE FROM lease WHERE name = 'lock/' || :id::text AND holder = 'me';\n";

/// The number behind `mark`.
double number_after(const std::string& text, std::string_view mark) {
    const auto at = text.find(mark);
    if (at == std::string::npos) give_up(fmt::format("no {} in: {}", mark, text));
    return std::stod(text.substr(at + mark.size()));
}

}  // namespace

RedisBenchmark::RedisBenchmark(std::uint16_t port, int connections, int threads)
    : port_(port),
      connections_(connections),
      threads_(threads),
      script_(tests::RedisByHand(port).ask({"SCRIPT", "LOAD", std::string(acquire_script)})) {}

double RedisBenchmark::calls_per_second(int pipeline) const {
    const std::string output = output_of({"redis-benchmark",
                                          "-p",
                                          std::to_string(port_),
                                          "-a",
                                          std::string(tests::server_password),
                                          "-c",
                                          std::to_string(connections_),
                                          "--threads",
                                          std::to_string(threads_),
                                          "-P",
                                          std::to_string(pipeline),
                                          "-n",
                                          std::to_string(20'000 * pipeline),
                                          "-r",
                                          "1000000000",
                                          "--csv",
                                          "EVALSHA",
                                          script_,
                                          "1",
                                          "lock:__rand_int__",
                                          "me",
                                          "30000"});
    // "test","rps","avg_latency_ms",… and then the figures.
    return number_after(output, " 30000\",\"");
}

PgBench::PgBench(std::uint16_t port, const std::filesystem::path& folder, int connections, int threads)
    : database_(tests::postgres_url(port)),
      script_((folder / "lease.sql").string()),
      connections_(connections),
      threads_(threads) {
    std::ofstream(script_) << lease_row;
    tests::ByHand{port}("CREATE TABLE IF NOT EXISTS lease (name text PRIMARY KEY, holder text, expires_at bigint)");
}

double PgBench::pairs_per_second() const {
    const std::string output = output_of({"/usr/lib/postgresql/15/bin/pgbench", "--no-vacuum", "--protocol", "prepared",
                                          "--client", std::to_string(connections_), "--jobs", std::to_string(threads_),
                                          "--transactions", "150", "--file", script_, database_});
    return number_after(output, "tps = ");
}

}  // namespace holdfast::bench
