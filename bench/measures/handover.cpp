#include "harness/programs.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "measures/measures.hpp"
#include "measures/stamps.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace holdfast::bench {
namespace {

constexpr int waiters = 8;
constexpr long enough_holds = 100;

struct Held {
    std::int64_t asked, begin, end;
};

std::vector<Held> holds_in(const std::string& file) {
    std::vector<Held> holds;
    std::ifstream lines(file);
    for (Held held{}; lines >> held.asked >> held.begin >> held.end;) holds.push_back(held);
    return holds;
}

/// The number of the requester's hold among all holds, counted from one.
long place_of(std::int64_t asked, const std::string& file) {
    const auto holds = holds_in(file);
    return std::ranges::find(holds, asked, &Held::asked) - holds.begin() + 1;
}

/// From the end of one hold to the beginning of the next, in milliseconds, without the first and the last ones,
/// when not all were waiting. And only where the next was waiting already when the one before began: a lock that
/// somebody finds free was not handed over.
std::vector<double> gaps_in(const std::string& file) {
    std::vector<Held> holds = holds_in(file);
    std::ranges::sort(holds, {}, &Held::begin);
    std::vector<double> gaps;
    for (std::size_t i = waiters; i + waiters < holds.size(); ++i)
        if (holds[i].asked < holds[i - 1].begin)
            gaps.push_back(static_cast<double>(holds[i].begin - holds[i - 1].end) / 1e6);
    if (gaps.empty()) give_up("nobody has handed the lock over");
    return gaps;
}

std::string fresh_file(const Site& site) {
    std::string file = (site.folder / "stamps").string();
    std::ofstream(file, std::ios::trunc).flush();
    std::ofstream(begun_beside(file), std::ios::trunc).flush();
    return file;
}

/// One process that holds and eight that wait, each of which does `work`.
std::vector<double> contend(const std::string& file, const std::function<void()>& work) {
    std::vector<pid_t> processes;
    for (int i = 0; i < waiters + 1; ++i) processes.push_back(fork_to(work));
    for (const pid_t process : processes) expect_success(process);
    return gaps_in(file);
}

std::vector<double> by_command(const Site& site, std::vector<std::string> command) {
    const std::string file = fresh_file(site);
    command.insert(command.end(), {site.stamp, file, ""});
    return contend(file, [&] {
        while (holds_begun(file) < enough_holds) {
            const std::int64_t asked = now_ns();
            command.back() = std::to_string(asked);
            expect_success(start(command));
            stay_away(file, place_of(asked, file));
        }
    });
}

/// From the call that gives the lock back to the return of the next that waits for it. `Waiter` is made by each process
/// for itself, because a connection must not cross a fork.
template <class Waiter, class... Arguments>
std::vector<double> by_call(const Site& site, const Arguments&... arguments) {
    const std::string file = fresh_file(site);
    return contend(file, [&] {
        Waiter waiter(arguments...);
        const Stamps stamps(file.c_str());
        while (holds_begun(file) < enough_holds) {
            const std::int64_t asked = now_ns();
            waiter.take();
            if (!stamps.hold(asked)) std::_Exit(1);
            waiter.give();
            stay_away(file, place_of(asked, file));
        }
    });
}

class ByLibrary {
public:
    explicit ByLibrary(const std::string& url) : store_(open_store(url).value()) {}
    void take() {
        HoldOptions options;
        options.wait = HoldOptions::forever;
        auto held = hold(*store_, LockName::parse("x").value(), options);
        if (!held) std::_Exit(1);
        held_.emplace(std::move(*held));
    }
    void give() {
        if (!held_->release()) std::_Exit(1);
        held_.reset();
    }

private:
    std::unique_ptr<Store> store_;
    std::optional<Hold> held_;
};

class ByAdvisoryLock {
public:
    explicit ByAdvisoryLock(std::uint16_t port) : shell_(port) {}
    void take() { shell_("SELECT pg_advisory_lock(7)"); }
    void give() { shell_("SELECT pg_advisory_unlock(7)"); }

private:
    tests::ByHand shell_;
};

std::vector<double> by_redis_py(const Site& site) {
    const std::string file = fresh_file(site);
    const std::vector<std::string> command{"/usr/bin/python3",
                                           (site.peers / "redis_py_lock.py").string(),
                                           std::to_string(tests::shared_server_port("redis")),
                                           std::string(tests::server_password),
                                           file,
                                           std::to_string(enough_holds)};
    return contend(file, [&] { expect_success(start(command)); });
}

std::vector<double> by_etcd_mutex(const Site& site) {
    const std::string file = fresh_file(site);
    const std::vector<std::string> command{(site.peers / "etcd_mutex").string(),
                                           std::to_string(tests::shared_server_port("etcd")), "handover", file,
                                           std::to_string(enough_holds)};
    return contend(file, [&] { expect_success(start(command)); });
}

struct Way {
    std::string name;
    std::function<std::vector<double>()> gaps;
};

Way library_on(const Site& site, const std::string& name, std::string_view kind) {
    const std::string url = fresh_store(site, kind);
    return {"library, " + name, [&site, url] { return by_call<ByLibrary>(site, url); }};
}

Way run_on(const Site& site, const std::string& name, std::string_view kind) {
    const std::string url = fresh_store(site, kind);
    return {"run to run, " + name, [&site, url] {
                return by_command(site, {site.holdfast, "run", "--store", url, "--wait", "forever", "x", "--"});
            }};
}

/// The first of `ways` is the peer. The goal is for the median.
std::vector<Line> compare(const Site& site, const std::vector<Way>& ways, double goal) {
    std::vector<Series> slowest(ways.size());
    std::vector<Contender> contenders;
    for (std::size_t i = 0; i < ways.size(); ++i)
        contenders.push_back({ways[i].name, [&, i] {
                                  const auto gaps = ways[i].gaps();
                                  slowest[i].values.push_back(quantile(gaps, 0.99));
                                  return quantile(gaps, 0.5);
                              }});
    const auto series = alternate("P9 beside " + ways.front().name, contenders, site.rounds);
    std::vector<Line> lines;
    for (std::size_t i = 1; i < ways.size(); ++i) {
        lines.push_back({"P9", "hand-over p50, " + ways[i].name, "ms", ways[0].name, series[0], series[i], Goal{goal}});
        lines.push_back({"P9", "hand-over p99, " + ways[i].name, "ms", ways[0].name, slowest[0], slowest[i]});
    }
    return lines;
}

}  // namespace

std::vector<Line> measure_handover(const Site& site) {
    const auto postgres = tests::shared_server_port("postgres");
    const std::string flock = (site.folder / "flock").string();
    std::vector<Line> lines;
    const auto add = [&](const std::vector<Way>& ways, double goal) {
        const auto some = compare(site, ways, goal);
        lines.insert(lines.end(), some.begin(), some.end());
    };
    add({{"flock(1)", [&] { return by_command(site, {"flock", flock}); }},
         library_on(site, "SQLite", "sqlite"),
         library_on(site, "file", "file"),
         run_on(site, "SQLite", "sqlite"),
         run_on(site, "file", "file")},
        1.0);
    add({{"pg_advisory_lock", [&] { return by_call<ByAdvisoryLock>(site, postgres); }},
         library_on(site, "PostgreSQL", "postgres")},
        3.0);
    add({{"redis-py Lock", [&] { return by_redis_py(site); }}, library_on(site, "Redis", "redis")}, 0.1);
    add({{"etcd's Go Mutex", [&] { return by_etcd_mutex(site); }}, library_on(site, "etcd", "etcd")}, 1.0);
    return lines;
}

}  // namespace holdfast::bench
