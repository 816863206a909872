#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "peers/measures.hpp"
#include "peers/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace holdfast::bench {
namespace {

constexpr int waiters = 8;
constexpr int turns = 12;

/// From the end of one hold to the beginning of the next, in milliseconds, without the first and the last ones,
/// when not all were waiting.
std::vector<double> gaps_in(const std::string& file) {
    std::vector<std::pair<std::int64_t, std::int64_t>> holds;
    std::ifstream lines(file);
    for (std::pair<std::int64_t, std::int64_t> hold; lines >> hold.first >> hold.second;) holds.push_back(hold);
    std::ranges::sort(holds);
    std::vector<double> gaps;
    for (std::size_t i = waiters; i + waiters < holds.size(); ++i)
        gaps.push_back(static_cast<double>(holds[i].first - holds[i - 1].second) / 1e6);
    return gaps;
}

std::string fresh_file(const Site& site) {
    std::string file = (site.folder / "stamps").string();
    std::ofstream(file, std::ios::trunc).flush();
    return file;
}

/// Eight processes that do `work` again and again.
std::vector<double> contend(const std::string& file, const std::function<void()>& work) {
    std::vector<pid_t> processes;
    for (int i = 0; i < waiters; ++i)
        processes.push_back(fork_to([&] {
            for (int turn = 0; turn < turns; ++turn) work();
        }));
    for (const pid_t process : processes) expect_success(process);
    return gaps_in(file);
}

std::vector<double> by_command(const Site& site, std::vector<std::string> command) {
    const std::string file = fresh_file(site);
    command.insert(command.end(), {site.stamp, file});
    return contend(file, [&] { expect_success(start(command)); });
}

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The library by itself: from the call of release to the return of the next hold.
std::vector<double> by_library(const Site& site, const std::string& url) {
    const std::string file = fresh_file(site);
    std::unique_ptr<Store> store;
    return contend(file, [&] {
        // Opened by the child: a connection must not cross a fork.
        if (!store) store = open_store(url).value();
        HoldOptions options;
        options.wait = HoldOptions::forever;
        auto held = hold(*store, LockName::parse("x").value(), options);
        if (!held) std::_Exit(1);
        const std::int64_t begin = now_ns();
        const int stamps = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
        const std::string line = fmt::format("{} {}\n", begin, now_ns());
        if (write(stamps, line.data(), line.size()) < 0) std::_Exit(1);
        close(stamps);
        if (!held->release()) std::_Exit(1);
    });
}

}  // namespace

std::vector<Line> measure_handover(const Site& site) {
    const std::string folder = site.folder.string();
    const std::string sqlite = "sqlite:" + folder + "/handover.db";
    const std::string file = "file:" + folder + "/handover";
    const auto run_on = [&](const std::string& store) {
        return [&site, store] {
            return by_command(site, {site.holdfast, "run", "--store", store, "--wait", "forever", "x", "--"});
        };
    };
    struct Way {
        std::string measure;
        std::function<std::vector<double>()> gaps;
    };
    const std::array ways{
        Way{"", [&] { return by_command(site, {"flock", folder + "/flock"}); }},
        Way{"library, SQLite", [&] { return by_library(site, sqlite); }},
        Way{"library, file", [&] { return by_library(site, file); }},
        Way{"run to run, SQLite", run_on(sqlite)},
        Way{"run to run, file", run_on(file)},
    };
    std::array<Series, ways.size()> slowest;
    std::vector<Contender> contenders;
    for (std::size_t i = 0; i < ways.size(); ++i)
        contenders.push_back({ways[i].measure, [&, i] {
                                  const auto gaps = ways[i].gaps();
                                  slowest[i].values.push_back(quantile(gaps, 0.99));
                                  return quantile(gaps, 0.5);
                              }});
    const auto series = alternate(contenders, site.rounds);
    std::vector<Line> lines;
    for (std::size_t i = 1; i < ways.size(); ++i) {
        lines.push_back({"P9", "hand-over p50, " + ways[i].measure, "ms", "flock(1)", series[0], series[i], Goal{1.0}});
        lines.push_back({"P9", "hand-over p99, " + ways[i].measure, "ms", "flock(1)", slowest[0], slowest[i]});
    }
    return lines;
}

}  // namespace holdfast::bench
