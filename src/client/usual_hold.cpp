#include "client/usual_hold.hpp"

#include <algorithm>
#include <array>

namespace holdfast::client {
namespace {

/// How many events are read one after the other, the newest first. Most locks need the first page only; a lock that is
/// renewed a hundred times in each hold needs all, and one with thousands of renewals has too few holds in them.
constexpr std::array<std::uint64_t, 3> pages{128, 512, 2048};

}  // namespace

std::optional<UsualHold> usual_hold(Store& store, const LockStatus& lock, Deadline deadline) {
    CompletedHolds holds;
    std::uint64_t newest = lock.seq;
    for (const std::uint64_t page : pages) {
        if (holds.is_full() || newest <= lock.pruned_seq) break;
        const std::uint64_t before = std::max(newest - std::min(newest, page), lock.pruned_seq);
        const auto events = store.history({.name = lock.name,
                                           .after_seq = before,
                                           .limit = static_cast<std::size_t>(newest - before),
                                           .which = HistoryQuery::Which::oldest},
                                          deadline);
        if (!events) return std::nullopt;
        holds.add_older(*events);
        newest = before;
    }
    return holds.usual();
}

}  // namespace holdfast::client
