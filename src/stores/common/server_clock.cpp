#include "stores/common/server_clock.hpp"

#include "base/real_clock.hpp"

#include <algorithm>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds oldest_sight{60'000};
constexpr milliseconds longest_trip{20};
constexpr milliseconds most_ahead{100};
constexpr milliseconds most_behind{8};

}  // namespace

void ServerClock::saw(Instant time, Boottime sent, Boottime received) {
    const std::scoped_lock lock(mutex_);
    seen_ = Seen{time, sent, received - sent};
}

std::optional<Instant> ServerClock::on_arrival() const {
    const Boottime now = base::real_clock().boottime();
    const std::scoped_lock lock(mutex_);
    if (!seen_ || now - seen_->sent > oldest_sight) return std::nullopt;
    // The server read its clock after the request had left, so the result is never too low. One millisecond more for
    // the rounding of both clocks.
    return seen_->time + (now - seen_->sent) + milliseconds{1} + std::min(seen_->trip, longest_trip);
}

Window ServerClock::window_for(Instant predicted) { return {predicted - most_ahead, predicted + most_behind}; }

}  // namespace holdfast::stores
