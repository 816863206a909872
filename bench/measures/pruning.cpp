#include "measures/pruning.hpp"

#include "harness/clients.hpp"
#include "harness/programs.hpp"
#include "holdfast/prune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace holdfast::bench {
namespace {

/// Prunes on a thread and a connection of its own, while it may.
class Pruning {
public:
    explicit Pruning(const std::string& url) : store_(opened(url)), thread_([this] { work(); }) {}
    Pruning(const Pruning&) = delete;
    Pruning& operator=(const Pruning&) = delete;
    ~Pruning() {
        stop_.request_stop();
        let(true);
    }

    void let(bool go) {
        const std::scoped_lock lock(mutex_);
        may_go_ = go;
        changed_.notify_all();
    }

private:
    void work() {
        PruneOptions options;
        options.keep = std::chrono::milliseconds{0};
        options.stop = stop_.get_token();
        options.on_progress = [this](const Pruned&) { pause(); };
        pause();
        if (const auto pruned = prune(*store_, options); !pruned) give_up(pruned.error().message);
        if (!stop_.stop_requested()) give_up("everything was pruned before the measuring was over");
    }
    void pause() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return may_go_; });
    }

    std::unique_ptr<Store> store_;
    std::stop_source stop_{};
    std::mutex mutex_{};
    std::condition_variable changed_{};
    bool may_go_ = false;  ///< Guarded by mutex_.
    std::jthread thread_;
};

constexpr std::chrono::milliseconds pruning_round{500};
/// There must be something left to prune in the last one.
constexpr int most_pruning_rounds = 7;

/// Pairs of one round, and how long each took, in milliseconds.
std::vector<double> pairs_of(Client& client) {
    using std::chrono::steady_clock;
    std::vector<double> took;
    const auto end = steady_clock::now() + pruning_round;
    for (auto before = steady_clock::now(); before < end;) {
        client.work();
        const auto after = steady_clock::now();
        took.push_back(std::chrono::duration<double, std::milli>(after - before).count());
        before = after;
    }
    return took;
}

}  // namespace

std::vector<Line> measure_beside_pruning(const Site& site, const std::string& title, const std::string& url) {
    const auto store = opened(url);
    const Clients client = library_clients(*store, 1);
    Pruning pruning(url);
    std::array<Series, 2> slow;
    const auto measured = [&](bool is_pruned) {
        pruning.let(is_pruned);
        const auto took = pairs_of(*client.front());
        pruning.let(false);
        slow[is_pruned ? 1 : 0].values.push_back(quantile(took, 0.99));
        return static_cast<double>(took.size()) / std::chrono::duration<double>(pruning_round).count();
    };
    const std::array contenders{Contender{"alone", [&] { return measured(false); }},
                                Contender{"beside pruning", [&] { return measured(true); }}};
    const auto series = alternate(fmt::format("P10 {}, pairs beside pruning", title), contenders,
                                  std::min(site.rounds, most_pruning_rounds));
    return {{"P10", title + ", pairs while the audit is pruned", "/s", "without pruning", series[0], series[1]},
            {"P10", title + ", p99 of a pair while the audit is pruned", "ms", "without pruning", slow[0], slow[1]}};
}

}  // namespace holdfast::bench
