#include "stores/etcd/node_clock.hpp"

#include "stores/batch/sealed.hpp"

#include <algorithm>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

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

Result<Moment> NodeClock::moment_of(const Gateway::Answer& answer) const {
    if (const auto judged = clock_.judges()) return Moment{*judged, milliseconds{0}};
    if (!answer.date)
        return fail(Errc::store_unavailable, "etcd's answer does not say what time it is (it has no Date)");
    return Moment{*answer.date, std::chrono::seconds{1}};
}

milliseconds NodeClock::tolerance(const Moment& moment) const { return std::max(margin_, slewing) + moment.resolution; }

milliseconds time_until(Instant instant, const Moment& moment) {
    if (moment.resolution == milliseconds{0}) return instant - moment.now;
    // It shows nothing between two seconds, and the one that it showed may have been nearly over.
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
