#include "kernel/renewal_plan.hpp"

#include <algorithm>

namespace holdfast::kernel {
namespace {

using std::chrono::milliseconds;

}  // namespace

milliseconds margin_of(milliseconds granted) {
    // A tenth covers clocks that run 5 % apart twice; 300 ms cover a busy scheduler. A short lease would be
    // all margin, so a quarter is the most.
    return std::min(std::max(granted / 10, milliseconds{300}), granted / 4);
}

Boottime RenewalPlan::deadline() const { return sent_at + granted - margin_of(granted); }

Boottime RenewalPlan::next_attempt(Boottime failed_at) const {
    // A quarter of what is left: several tries fit, and a store that is down is not hammered.
    return failed_at + std::clamp(time_left(failed_at) / 4, milliseconds{20}, std::max(interval, milliseconds{20}));
}

milliseconds RenewalPlan::call_timeout(Boottime now) const {
    return std::max(std::min(granted / 3, time_left(now) / 2), milliseconds{20});
}

milliseconds RenewalPlan::time_left(Boottime now) const {
    const Boottime stop_at = deadline() - time_to_stop;
    return std::max((now < stop_at ? stop_at : deadline()) - now, milliseconds{0});
}

}  // namespace holdfast::kernel
