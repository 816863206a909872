#include "harness/clients.hpp"
#include "harness/programs.hpp"
#include "measures/measures.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <thread>

namespace holdfast::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int crashes = 9;  ///< In each round.
constexpr milliseconds patience{60'000};

/// When the next holder asks.
enum class Next { waits_already, comes_then };

template <class Condition>
void await(const Condition& condition) {
    for (const auto end = steady_clock::now() + patience; !condition(); std::this_thread::sleep_for(milliseconds{1}))
        if (steady_clock::now() > end) give_up("nothing happens");
}

/// From kill -9 of the process that the shell knows to the end of the next command under the lock, in milliseconds.
double after_a_crash(const Site& site, const std::string& url, Store& store, Next next) {
    const auto run = [&](std::vector<std::string> command) {
        std::vector<std::string> line{site.holdfast, "run", "--store", url, "--ttl", "10m", "--wait", "1m", "x", "--"};
        line.insert(line.end(), command.begin(), command.end());
        return start(line);
    };
    const auto lock = LockName::parse("x").value();
    const auto look = [&] { return store.inspect(lock, Deadline::in(host_clock(), patience)).value(); };
    const auto begun = site.folder / "begun";
    const pid_t crashing = run({"/bin/sh", "-c", fmt::format("echo >'{}'; exec sleep 60", begun.string())});
    await([&] { return std::filesystem::exists(begun); });
    std::filesystem::remove(begun);
    pid_t waiting = 0;
    if (next == Next::waits_already) {
        waiting = run({"true"});
        await([&] { return look().waiters == 1; });
    }
    const auto begin = steady_clock::now();
    kill(crashing, SIGKILL);
    if (next == Next::comes_then) waiting = run({"true"});
    expect_success(waiting);
    const double took = std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
    waitpid(crashing, nullptr, 0);
    return took;
}

double median_after_crashes(const Site& site, const std::string& url, Next next) {
    const auto store = opened(url);
    std::vector<double> took;
    for (int i = 0; i < crashes; ++i) took.push_back(after_a_crash(site, url, *store, next));
    return quantile(std::move(took), 0.5);
}

}  // namespace

std::vector<Line> measure_crash(const Site& site) {
    struct Place {
        const char* name;
        const char* kind;
        double limit;
    };
    constexpr std::array places{Place{"SQLite", "sqlite", 100},       Place{"file", "file", 100},
                                Place{"PostgreSQL", "postgres", 300}, Place{"MariaDB", "mysql", 300},
                                Place{"Redis", "redis", 300},         Place{"etcd", "etcd", 300}};
    std::vector<Line> lines;
    for (const Place& place : places) {
        const std::string url = fresh_store(site, place.kind);
        const std::array contenders{
            Contender{fmt::format("{} ms", place.limit), [&] { return place.limit; }},
            Contender{"waits", [&] { return median_after_crashes(site, url, Next::waits_already); }},
            Contender{"comes", [&] { return median_after_crashes(site, url, Next::comes_then); }}};
        const auto series = alternate(fmt::format("P14 {}", place.name), contenders, site.rounds);
        const auto line = [&](const char* what, std::size_t ours) {
            return Line{"P14",     fmt::format("kill -9 of run to the next, {}, {}", what, place.name),
                        "ms",      contenders[0].name,
                        series[0], series[ours],
                        Goal{1.0}};
        };
        lines.push_back(line("waiting", 1));
        lines.push_back(line("just started", 2));
    }
    return lines;
}

}  // namespace holdfast::bench
