#include "client/hold_core.hpp"

#include <utility>

namespace holdfast {

Hold::Core::Core(Store& store, const HoldOptions& options, client::Granted granted,
                 client::LockOrder::Registration registration, AtEnd at_end)
    : store_(store),
      store_id_(store.store_id()),
      options_(options),
      stolen_from_(std::move(granted.stolen_from)),
      at_end_(at_end),
      registration_(std::move(registration)),
      lease_(store, options, std::move(granted)),
      on_lost_(lease_.lost(), Withdraw{registration_}) {
    if (store_id_) registration_.set_store_id(*store_id_);
}

Hold::Core::~Core() {
    // The observer is told what came of it.
    if (!is_done_) static_cast<void>(release());
}

Result<void> Hold::Core::start() {
    lease_.tell({HoldEventKind::acquired, lease_.name(), lease_.status(), std::nullopt});
    return options_.renew_from == RenewFrom::the_grant ? start_renewing() : Result<void>{};
}

Result<void> Hold::Core::start_renewing() {
    if (is_done_ || renewer_) return {};
    auto renewer = client::Renewer::of(store_, *options_.clock);
    if (auto added = renewer->add(lease_); !added) return added;
    const std::scoped_lock lock(mutex_);
    renewer_ = std::move(renewer);
    return {};
}

Result<void> Hold::Core::release() {
    const auto request = begin_release();
    Result<void> released;
    if (!request)
        released = std::unexpected(request.error());
    else if (*request)
        released = finish_release(ask_to_release(**request));
    // Afterwards: ending the threads of the last hold takes time that a waiter for the lock need not wait.
    leave_renewer();
    return released;
}

void Hold::Core::abandon() {
    if (is_done_) return;
    stop_renewing();
    leave_renewer();
}

bool Hold::Core::is_stuck() const {
    const std::scoped_lock lock(mutex_);
    return renewer_ && renewer_->is_stuck();
}

bool Hold::Core::try_stop_renewing() {
    if (renewer_ && !is_done_ && !has_stopped_) has_stopped_ = renewer_->try_remove(lease_);
    return !renewer_ || is_done_ || has_stopped_;
}

void Hold::Core::stop_renewing() {
    is_done_ = true;
    if (renewer_ && !has_stopped_) renewer_->remove(lease_);
    if (has_stopped_) lease_.finish_callbacks();
    registration_.withdraw();
}

void Hold::Core::leave_renewer() {
    // If this hold is the last, the renewer would wait for a call that hangs. That is left to the destructor.
    if (!renewer_ || renewer_->is_stuck()) return;
    std::shared_ptr<client::Renewer> ends_outside_the_mutex;
    const std::scoped_lock lock(mutex_);
    ends_outside_the_mutex = std::move(renewer_);
}

Result<std::optional<Release>> Hold::Core::begin_release() {
    if (is_done_) return fail(Errc::lock_not_held, lease_.name().text() + " was released already");
    stop_renewing();
    if (auto cause = lease_.loss()) return std::unexpected(*cause);
    if (at_end_ == AtEnd::leave) return std::nullopt;
    return Release{lease_.name(), lease_.credentials()};
}

Result<void> Hold::Core::finish_release(const Reply& reply) {
    HoldEvent event{HoldEventKind::released, lease_.name(), std::nullopt, std::nullopt};
    if (reply) event.lock = reply->lock;
    if (!reply) event.cause = reply.error();
    lease_.tell(event);
    if (!reply) return std::unexpected(reply.error());
    return {};
}

Reply Hold::Core::ask_to_release(const Release& request) {
    Reply reply = ask_once_to_release(request);
    // Repeating a release is harmless, and the answer may be what got lost.
    if (!reply && reply.error().code == Errc::outcome_unknown) reply = ask_once_to_release(request);
    return reply;
}

Reply Hold::Core::ask_once_to_release(const Release& request) {
    const Clock& clock = *options_.clock;
    // Where a call hangs the next one may, too. Otherwise a thread for a release would cost more than the release.
    if (!renewer_ || !renewer_->is_stuck()) return store_.apply_one(request, Deadline::in(clock, release_timeout));
    // The store has a little less time, so that its own error arrives.
    const Deadline store_until = Deadline::in(clock, release_timeout * 9 / 10);
    auto reply = renewer_->other_calls().run<Reply>(
        [&store = store_, request, store_until] { return store.apply_one(request, store_until); },
        Deadline::in(clock, release_timeout), clock);
    return reply ? *std::move(reply)
                 : fail(Errc::outcome_unknown, "the call to the store has not returned, although its time is over");
}

}  // namespace holdfast
