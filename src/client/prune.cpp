#include "holdfast/prune.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

/// Locks that are read at once: a store may have to walk over all that follow, to find each page.
constexpr std::size_t page_size = 500;
/// In one batch: how long others may have to wait for it.
constexpr std::uint64_t most_events = 500;
constexpr std::size_t most_locks = 50;
constexpr std::chrono::seconds patience{30};

class Pruner {
public:
    Pruner(Store& store, const PruneOptions& options)
        : store_(store),
          options_(options),
          actor_(options.actor.empty() ? Holder::this_process().text : options.actor) {}

    Result<Pruned> run() {
        ListQuery page{.with_free = true, .limit = page_size};
        while (!options_.stop.stop_requested()) {
            const auto locks = store_.list(page, soon());
            if (!locks) return std::unexpected(locks.error());
            if (locks->empty()) break;
            for (const LockStatus& lock : *locks) {
                if (options_.stop.stop_requested()) break;
                if (auto pruned = visit(lock); !pruned) return std::unexpected(pruned.error());
            }
            page.after = locks->back().name.text();
            if (options_.on_progress) options_.on_progress(total_);
        }
        if (auto sent = send(); !sent) return std::unexpected(sent.error());
        return total_;
    }

private:
    [[nodiscard]] Deadline soon() const { return Deadline::in(store_.clock(), patience); }

    Result<void> visit(const LockStatus& lock) {
        ++total_.visited;
        const Instant before = lock.as_of - options_.keep;
        // The event that tells of the pruning takes the place of one, so a single old one stays.
        constexpr std::uint64_t worth_it = 2;
        const auto few = old_events(lock, lock.pruned_seq, worth_it, before);
        if (!few) return std::unexpected(few.error());
        if (*few < worth_it) return {};
        ++total_.locks;
        for (std::uint64_t after = lock.pruned_seq; !options_.stop.stop_requested();) {
            const auto count = old_events(lock, after, most_events, before);
            if (!count) return std::unexpected(count.error());
            if (*count == 0) return {};
            after += *count;
            if (auto added = remove(lock.name, after, *count); !added) return added;
        }
        return {};
    }

    /// How many events after `after` are old and follow each other without a gap, up to `most`. The lock's newest event
    /// is not counted.
    Result<std::uint64_t> old_events(const LockStatus& lock, std::uint64_t after, std::uint64_t most, Instant before) {
        if (after + 1 >= lock.seq) return 0;
        const auto events = store_.history(
            {.name = lock.name, .after_seq = after, .limit = most, .which = HistoryQuery::Which::oldest}, soon());
        if (!events) return std::unexpected(events.error());
        const auto young = std::ranges::find_if(
            *events, [&](const AuditEvent& event) { return event.at >= before || event.seq >= lock.seq; });
        return static_cast<std::uint64_t>(young - events->begin());
    }

    Result<void> remove(const LockName& name, std::uint64_t through, std::uint64_t count) {
        total_.events += count;
        if (options_.only_count) return {};
        if (collected_ + count > most_events || requests_.size() >= most_locks)
            if (auto sent = send(); !sent) return sent;
        requests_.emplace_back(Prune{name, through, actor_, options_.reason});
        collected_ += count;
        return {};
    }

    Result<void> send() {
        if (requests_.empty()) return {};
        auto replies = store_.apply(requests_, soon());
        // Repeating is harmless. If that fails, whatever for, the first one may still have been done.
        if (!replies && replies.error().code == Errc::outcome_unknown)
            if (auto again = store_.apply(requests_, soon())) replies = std::move(again);
        if (!replies) return std::unexpected(replies.error());
        for (const Reply& reply : *replies)
            if (!reply) return std::unexpected(reply.error());
        requests_.clear();
        collected_ = 0;
        return {};
    }

    Store& store_;
    const PruneOptions& options_;
    const std::string actor_;
    std::vector<Request> requests_{};
    std::uint64_t collected_ = 0;  ///< Events that `requests_` remove.
    Pruned total_{};
};

}  // namespace

Result<Pruned> prune(Store& store, const PruneOptions& options) { return Pruner(store, options).run(); }

}  // namespace holdfast
