#include "client/kept_lease.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// How long the store may take to tell what happened to a lease that is lost already.
constexpr milliseconds history_timeout{500};

/// A lease that was handed over is short until it is renewed. Not at once: much work is done sooner.
constexpr milliseconds renewal_of_short_lease{100};

kernel::RenewalPlan plan_of(const LockStatus& lock, Boottime sent_at, const HoldOptions& options) {
    // What the store granted, which max_until may have cut, and not what was asked for. A lease that was handed over
    // may be longer than its ttl; but its first renewal makes it a ttl, and may do so without the holder hearing of it.
    const milliseconds granted = std::min(time_left(lock), options.ttl.time());
    const milliseconds interval = options.renew_interval.value_or(options.ttl.time() / 3);
    const bool is_short = granted < options.ttl.time() * 9 / 10 && !is_at_limit(*lock.lease);
    return {granted, is_short ? std::min(interval, renewal_of_short_lease) : interval, sent_at, options.time_to_stop};
}

}  // namespace

KeptLease::KeptLease(Store& store, const HoldOptions& options, Granted granted)
    : store_(store),
      options_(options),
      name_(granted.lock.name),
      as_(std::move(granted.as)),
      status_(std::move(granted.lock)),
      plan_(plan_of(status_, granted.sent_at, options)) {}

Lease KeptLease::lease() const {
    const std::scoped_lock lock(mutex_);
    return *status_.lease;
}

LockStatus KeptLease::status() const {
    const std::scoped_lock lock(mutex_);
    return status_;
}

kernel::RenewalPlan KeptLease::plan() const {
    const std::scoped_lock lock(mutex_);
    return plan_;
}

std::optional<Error> KeptLease::loss() const {
    const std::scoped_lock lock(mutex_);
    return loss_;
}

Error KeptLease::reason_of_expiry() const {
    const std::scoped_lock lock(mutex_);
    return client::reason_of_expiry({name_, *status_.lease, options_.renew, last_failure_}, options_.clock->wall());
}

bool KeptLease::can_be_renewed() const {
    const std::scoped_lock lock(mutex_);
    return options_.renew && !is_at_limit(*status_.lease);
}

KeptLease::CallbacksToRun KeptLease::on_renewed(Outcome outcome, Boottime sent_at) {
    {
        const std::scoped_lock lock(mutex_);
        status_ = outcome.lock;
        plan_ = plan_of(status_, sent_at, options_);
        last_failure_.reset();
    }
    if (!options_.observer) return nullptr;
    observer_callbacks_->push([this, event = HoldEvent{HoldEventKind::renewed, name_, std::move(outcome.lock),
                                                       std::nullopt}] { tell(event); });
    return observer_callbacks_;
}

KeptLease::CallbacksToRun KeptLease::on_failure(const Error& error) {
    {
        const std::scoped_lock lock(mutex_);
        last_failure_ = error;
    }
    if (!options_.observer) return nullptr;
    observer_callbacks_->push(
        [this, event = HoldEvent{HoldEventKind::renew_failed, name_, std::nullopt, error}] { tell(event); });
    return observer_callbacks_;
}

KeptLease::CallbacksToRun KeptLease::on_deadline() {
    const Error cause = reason_of_expiry();
    set_loss(cause);
    loss_callbacks_->push([this, cause] {
        lost_.request_stop();
        tell_loss(HoldEventKind::expired, cause);
    });
    return loss_callbacks_;
}

KeptLease::CallbacksToRun KeptLease::on_refusal(const Error& cause, BoundedCalls& calls) {
    set_loss(cause);
    loss_callbacks_->push([this, cause, &calls] {
        // Stop the work first, because another client may hold the lock already. The reason can wait.
        lost_.request_stop();
        HoldEventKind kind = HoldEventKind::expired;
        Error told = cause;
        if (const auto explained = explain(cause, calls)) {
            kind = explained->kind;
            told.message = explained->message;
            set_loss(told);
        }
        tell_loss(kind, told);
    });
    return loss_callbacks_;
}

void KeptLease::finish_callbacks() {
    // In this order, because a loss is told to the observer when it was announced.
    loss_callbacks_->finish();
    observer_callbacks_->finish();
}

void KeptLease::set_loss(const Error& cause) {
    const std::scoped_lock lock(mutex_);
    loss_ = cause;
}

std::optional<Explanation> KeptLease::explain(const Error& cause, BoundedCalls& calls) const {
    if (cause.code != Errc::lock_not_held) return std::nullopt;
    const std::uint64_t last_seq = status().seq;
    if (cause.holder && cause.holder->seq < last_seq)
        return Explanation{
            HoldEventKind::expired,
            fmt::format("the store knows nothing of the lease on {}: it was emptied, or restored from an older copy",
                        name_.text())};
    const Deadline until = Deadline::in(*options_.clock, history_timeout);
    const auto events = calls.run<Result<std::vector<AuditEvent>>>(
        [&store = store_, query = HistoryQuery{name_, {}, last_seq, {}}, until] { return store.history(query, until); },
        until, *options_.clock);
    if (!events || !*events) return std::nullopt;
    return explain_loss(name_, as_.lock_id, **events, options_.clock->wall());
}

void KeptLease::tell_loss(HoldEventKind kind, const Error& cause) {
    std::optional<LockStatus> seen;
    if (cause.holder) seen = *cause.holder;
    observer_callbacks_->push([this, kind, seen, cause] {
        tell({kind, name_, seen, cause});
        tell({HoldEventKind::lost, name_, seen, cause});
    });
    // On this thread, after what the observer has not heard yet.
    observer_callbacks_->run();
}

void KeptLease::tell(const HoldEvent& event) const {
    if (options_.observer) options_.observer(event);
}

}  // namespace holdfast::client
