#include "client/queued_wait.hpp"

#include "client/waiter.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// After a full queue: to ask again, or to give the place up.
constexpr milliseconds pause_before_next_try{100};
constexpr milliseconds time_to_withdraw{2'000};

}  // namespace

QueuedWait::QueuedWait(Loop& loop, Batcher& batcher, Store& store, const Acquire& request, WaitTerms terms, Done done)
    : loop_(loop),
      batcher_(batcher),
      store_(store),
      turn_(request, store.clock()),
      terms_(std::move(terms)),
      done_(std::move(done)) {}

void QueuedWait::start() {
    if (is_over_) return finish(fail(Errc::cancelled, "the wait was given up before it began"), true);
    ask();
}

void QueuedWait::give_up() {
    if (std::exchange(is_over_, true)) return;
    if (is_asleep_) withdraw();
}

void QueuedWait::ask() {
    wake();
    if (!is_still_allowed()) return withdraw();
    // Before the time to ask, which is that of the credentials that are sent.
    std::vector<Request> requests = turn_.ask();
    const bool taken =
        batcher_.submit(std::move(requests), turn_.time_to_ask(), [self = shared_from_this()](const Applied& applied) {
            self->info_ = applied.store;
            self->answered(self->turn_.answered(applied.replies, applied.sent_at));
        });
    if (!taken) answered(fail(Errc::store_unavailable, "too many requests wait for the store"));
}

bool QueuedWait::is_still_allowed() {
    if (!terms_.allowed) return true;
    const auto allowed = terms_.allowed(turn_.request());
    if (!allowed) refusal_ = allowed.error();
    return allowed.has_value();
}

void QueuedWait::answered(Result<Granted> granted) {
    if (granted && !is_over_) return finish(std::move(granted));
    if (granted) {
        is_held_ = true;
        return withdraw();
    }
    if (turn_.asks_again() && !is_over_) return ask();
    refusal_ = granted.error();
    if (!QueuedAcquire::is_passing(refusal_->code)) return finish(std::unexpected(*refusal_));
    if (terms_.blocked) terms_.blocked(*refusal_);
    if (is_over_ || terms_.deadline.passed(store_.clock())) return withdraw();
    sleep();
}

void QueuedWait::sleep() {
    is_asleep_ = true;
    ++sleeps_;
    const milliseconds nap = std::max(turn_.nap(*refusal_), pause_before_next_try);
    timer_ = loop_.after(std::min(nap, terms_.deadline.remaining(store_.clock())),
                         [self = weak_from_this()] { call(self, &QueuedWait::ask_or_leave); });
    const auto watch = turn_.watch(*refusal_);
    if (!watch) return;
    // Called by the store's thread, perhaps before this returns.
    auto subscribed = store_.subscribe(
        *watch, [&loop = loop_, weak = weak_from_this(), sleep = sleeps_](Result<std::optional<HandedOn>> fired) {
            auto handed_on = fired ? std::move(*fired) : std::nullopt;
            loop.post([weak, sleep, handed_on = std::move(handed_on)]() mutable {
                if (const auto self = weak.lock()) self->called(sleep, std::move(handed_on));
            });
        });
    if (subscribed) subscription_ = std::move(*subscribed);
}

/// By a store: the lock was handed over, or may be free. `sleep` tells a late call from one for this sleep.
void QueuedWait::called(std::uint64_t sleep, std::optional<HandedOn> handed_on) {
    if (!is_asleep_ || sleep != sleeps_) return;
    if (!handed_on) return ask();
    if (terms_.enough && time_left(handed_on->lock) >= *terms_.enough)
        return finish(Granted{{std::move(handed_on->lock), std::nullopt}, handed_on->seen_from, turn_.request().as});
    extend();
}

void QueuedWait::call(const std::weak_ptr<QueuedWait>& weak, void (QueuedWait::*method)()) {
    if (const auto self = weak.lock()) ((*self).*method)();
}

void QueuedWait::ask_or_leave() {
    if (terms_.deadline.passed(store_.clock()))
        withdraw();
    else
        ask();
}

/// The lease lasts as long as the place in the queue would have, until it is renewed.
void QueuedWait::extend() {
    wake();
    // The lock was handed on already. It is given back.
    if (!is_still_allowed()) return withdraw();
    const bool taken =
        batcher_.submit({turn_.extension()}, turn_.time_to_ask(), [self = shared_from_this()](const Applied& applied) {
            self->info_ = applied.store;
            const bool is_ours = applied.replies && applied.replies->front();
            if (self->is_over_) {
                self->is_held_ = is_ours;
                return self->withdraw();
            }
            if (!is_ours) return self->ask();
            self->finish(Granted{*applied.replies->front(), applied.sent_at, self->turn_.request().as});
        });
    if (!taken) sleep();
}

void QueuedWait::withdraw() {
    wake();
    const bool taken = batcher_.submit(turn_.withdrawal(), Deadline::in(store_.clock(), time_to_withdraw),
                                       [self = shared_from_this()](const Applied& applied) {
                                           self->info_ = applied.store;
                                           self->withdrawn(applied.replies);
                                       });
    if (!taken) timer_ = loop_.after(pause_before_next_try, [self = shared_from_this()] { self->withdraw(); });
}

void QueuedWait::withdrawn(const Result<std::vector<Reply>>& replies) {
    if (auto left = turn_.withdrawn(replies); !left) return finish(std::unexpected(left.error()));
    if (is_held_ && !(replies && replies->front()))
        return finish(
            fail(Errc::outcome_unknown, "it was granted after the wait was given up, and may not be given back"));
    finish(std::unexpected(refusal_.value_or(Error{Errc::cancelled, "the wait was given up"})), is_over_);
}

void QueuedWait::wake() {
    is_asleep_ = false;
    timer_.reset();
    subscription_.reset();
}

void QueuedWait::finish(Result<Granted> granted, bool is_given_up) {
    const auto self = shared_from_this();
    wake();
    std::exchange(done_, {})({std::move(granted), is_given_up, info_});
}

}  // namespace holdfast::client
