#include "stores/etcd/node_clock.hpp"

#include "base/real_clock.hpp"
#include "stores/common/sealed.hpp"

#include <algorithm>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// After this time the node's clock is read again, since it may have been moved.
constexpr milliseconds good_for{5000};
/// An answer that took longer is not exact enough.
constexpr milliseconds longest_trip{1000};

void begin_late(Lease& lease, const Moment& moment) {
    if (lease.renewed_at != moment.now) return;
    if (lease.acquired_at == moment.now) {
        lease.acquired_at += moment.resolution;
        if (lease.max_until) *lease.max_until += moment.resolution;
    }
    // The holder counts on `expires_at - renewed_at`, so that must not grow.
    lease.renewed_at += moment.resolution;
    lease.expires_at += moment.resolution;
    if (lease.max_until) lease.expires_at = std::min(lease.expires_at, *lease.max_until);
}

void begin_late(Override& ask, const Moment& moment) {
    if (ask.asked_at != moment.now) return;
    ask.asked_at += moment.resolution;
    ask.expires_at += moment.resolution;
}

}  // namespace

Moment NodeClock::heard(Instant date, Boottime asked_at) {
    const Boottime heard_at = base::real_clock().boottime();
    const std::scoped_lock lock(mutex_);
    if (heard_at - asked_at <= longest_trip) heard_ = Heard{date, asked_at, heard_at};
    return {date, resolution};
}

std::optional<Moment> NodeClock::reckoned() const {
    if (const auto judged = clock_.judges()) return Moment{*judged, milliseconds{0}};
    std::optional<Heard> heard;
    {
        const std::scoped_lock lock(mutex_);
        heard = heard_;
    }
    // Real time, because the node's clock runs in it.
    const Boottime now = base::real_clock().boottime();
    if (!heard || now - heard->heard_at > good_for) return std::nullopt;
    // The node read its clock after the request was sent and before the answer arrived. So it now shows at least its
    // time then plus what has passed since the answer, and at most the end of that second plus what has passed since
    // the question. Cut to seconds, like every other reading, so that times in the audit log never go back.
    const Instant least = heard->date + (now - heard->heard_at);
    const Instant most = heard->date + resolution + (now - heard->asked_at);
    const Instant cut = std::chrono::floor<std::chrono::seconds>(least);
    return Moment{cut, most - cut, false};
}

milliseconds NodeClock::tolerance(const Moment& moment) const { return std::max(margin_, slewing) + moment.resolution; }

milliseconds time_until(Instant instant, const Moment& moment) {
    if (moment.resolution == milliseconds{0}) return instant - moment.now;
    // The clock has whole seconds, and the second that it showed may have been nearly over.
    return std::chrono::ceil<std::chrono::seconds>(instant) - moment.now - moment.resolution;
}

void begin_late(std::vector<Reply>& replies, std::vector<Change>& changes, const Moment& moment) {
    if (moment.resolution == milliseconds{0}) return;
    for (Reply& reply : replies) {
        if (!reply) continue;
        if (reply->lock.lease) begin_late(*reply->lock.lease, moment);
        if (reply->lock.override_request) begin_late(*reply->lock.override_request, moment);
    }
    for (Change& change : changes) {
        if (change.record && change.record->held) begin_late(change.record->held->lease, moment);
        if (change.record && change.record->pending) begin_late(change.record->pending->ask, moment);
        // Every ticket that is put was made or prolonged just now.
        for (kernel::Ticket& ticket : change.put) ticket.expires_at += moment.resolution;
    }
}

}  // namespace holdfast::stores::etcd
