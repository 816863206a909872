#include "server/upkeep.hpp"

#include "client/event_reader.hpp"
#include "client/sweeper.hpp"
#include "holdfast/prune.hpp"

#include <algorithm>

namespace holdfast::server {
namespace {

using Timer = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A page of a sweep, or of pruning, may take one part in so many of the time.
constexpr int share = 10;
constexpr std::chrono::seconds patience{30};
constexpr milliseconds shortest_pause{5};

std::chrono::microseconds since(Timer::time_point began) {
    return std::chrono::duration_cast<std::chrono::microseconds>(Timer::now() - began);
}

/// The events since the last time, for the figures.
class FollowedEvents {
public:
    Result<void> read(Store& store, DaemonMetrics& metrics, const std::stop_token& stop) {
        const auto soon = [&] { return Deadline::in(store.clock(), patience); };
        if (!follows_) {
            if (auto skipped = reader_.skip_to_end(store, soon()); !skipped) return skipped;
            follows_ = true;
        }
        do {
            const auto events = reader_.next(store, soon());
            if (!events) return std::unexpected(events.error());
            for (const AuditEvent& event : *events) metrics.read_event(event);
        } while (!reader_.is_at_end() && !stop.stop_requested());
        return {};
    }

private:
    client::EventReader reader_{};
    bool follows_ = false;
};

}  // namespace

Upkeep::Upkeep(Store& store, DaemonMetrics& metrics, Log& log, UpkeepOptions options)
    : store_(store), metrics_(metrics), log_(log), options_(std::move(options)) {
    if (options_.sweep_every > milliseconds{0})
        sweeper_ = std::jthread([this](const std::stop_token& stop) { sweep_until(stop); });
    if (options_.keep > milliseconds{0})
        pruner_ = std::jthread([this](const std::stop_token& stop) { prune_until(stop); });
}

Upkeep::~Upkeep() {
    sweeper_.request_stop();
    pruner_.request_stop();
}

void Upkeep::pause(std::chrono::microseconds time, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, stop, time, [] { return false; });
}

void Upkeep::sweep_until(const std::stop_token& stop) {
    client::Sweeper sweeper(store_);
    FollowedEvents events;
    bool was_well = true;
    while (!stop.stop_requested()) {
        auto began = Timer::now();
        std::chrono::microseconds busy{0};
        metrics_.look_begins();
        const auto swept = sweeper.sweep(stop, [&](std::span<const LockStatus> locks) {
            metrics_.looked_at(locks, store_.clock().wall());
            const auto took = since(began);
            busy += took;
            pause(took * share, stop);
            began = Timer::now();
        });
        const auto read = swept ? events.read(store_, metrics_, stop) : std::unexpected(swept.error());
        if (swept) metrics_.ended(swept->ended);
        if (read) {
            metrics_.look_ends(store_.info(), busy + since(began));
        } else {
            metrics_.look_failed(read.error());
        }
        // Said once, and not every few seconds while a store is away.
        if (read.has_value() != was_well)
            log_.write(read ? "store_reached" : "store_failed",
                       {{"error", read ? json::Value() : json::Value::text(read.error().message)}});
        was_well = read.has_value();
        pause(std::max({std::chrono::microseconds(options_.sweep_every), std::chrono::microseconds(shortest_pause),
                        since(began) * share}),
              stop);
    }
}

void Upkeep::prune_until(const std::stop_token& stop) {
    for (pause(options_.prune_after, stop); !stop.stop_requested(); pause(options_.prune_every, stop)) prune_once(stop);
}

void Upkeep::prune_once(const std::stop_token& stop) {
    PruneOptions how{.keep = options_.keep, .actor = options_.actor, .reason = "retention", .stop = stop};
    auto began = Timer::now();
    how.on_progress = [&](const Pruned&) {
        pause(since(began) * share, stop);
        began = Timer::now();
    };
    const auto pruned = prune(store_, how);
    if (!pruned) {
        log_.write("prune_failed", {{"error", json::Value::text(pruned.error().message)}});
        return;
    }
    metrics_.pruned(pruned->events);
    if (pruned->events > 0)
        log_.write("pruned",
                   {{"events", json::Value::number(pruned->events)}, {"locks", json::Value::number(pruned->locks)}});
}

}  // namespace holdfast::server
