#include "client/async_acquire.hpp"

#include "client/hold_terms.hpp"

#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds time_to_give_back{2'000};

}  // namespace

AcquireCall::AcquireCall(AsyncCalls& calls, Acquire request, AcquireTerms terms, Done done)
    : calls_(calls), request_(std::move(request)), terms_(std::move(terms)), done_(std::move(done)) {}

std::shared_ptr<AcquireCall> AcquireCall::self() { return std::static_pointer_cast<AcquireCall>(shared_from_this()); }

void AcquireCall::start() {
    if (is_over_ || terms_.cancel.stop_requested()) {
        is_over_ = true;
        return finish(fail(Errc::cancelled, "the wait was cancelled before it began"));
    }
    on_stop_.watch(terms_.cancel, calls_, weak_from_this());
    if (terms_.wait > milliseconds{0})
        wait_in_queue();
    else
        ask();
}

void AcquireCall::give_up() {
    if (std::exchange(is_over_, true)) return;
    if (queued_) return queued_->give_up();
    if (!next_attempt_) return;
    next_attempt_.reset();
    finish(std::unexpected(*refusal_));
}

void AcquireCall::wait_in_queue() {
    WaitTerms terms{Deadline::in(calls_.store().clock(), terms_.wait), terms_.blocked, terms_.enough, {}};
    queued_ =
        std::make_shared<QueuedWait>(calls_.loop(), calls_.batcher(), calls_.store(), request_, std::move(terms),
                                     [self = self()](EndedWait ended) { self->finish(std::move(ended.granted)); });
    queued_->start();
}

void AcquireCall::ask() {
    next_attempt_.reset();
    const Deadline until = Deadline::in(calls_.store().clock(), request_.ttl.time() / 3);
    calls_.submit({request_}, until,
                  [self = self()](const Applied& applied) { self->answered(reply_in(applied), applied.sent_at); });
}

void AcquireCall::answered(const Reply& reply, Boottime sent_at) {
    if (is_over_ && (reply || reply.error().code == Errc::outcome_unknown)) return give_back();
    if (reply) return finish(Granted{*reply, sent_at, request_.as});
    refusal_ = reply.error();
    const bool may_pass = refusal_->code == Errc::lock_conflict || refusal_->code == Errc::store_unavailable;
    if (may_pass && terms_.blocked) terms_.blocked(*refusal_);
    const auto pause = may_pass && !is_over_ ? pause_before_retry(terms_.retry, attempts_++) : std::nullopt;
    if (!pause) return finish(std::unexpected(*refusal_));
    next_attempt_ = calls_.loop().after(*pause, [weak = weak_from_this()] {
        if (const auto call = weak.lock()) static_cast<AcquireCall&>(*call).ask();
    });
}

/// It was given up while it was under way, and is granted, or may be.
void AcquireCall::give_back() {
    const Deadline until = Deadline::in(calls_.store().clock(), time_to_give_back);
    calls_.submit({Cancel{request_.name, request_.as}}, until, [self = self()](const Applied& applied) {
        if (reply_in(applied)) return self->finish(fail(Errc::cancelled, "the wait was cancelled"));
        self->finish(fail(Errc::outcome_unknown, "it was cancelled, and what was granted may not be given back"));
    });
}

void AcquireCall::finish(Result<Granted> granted) {
    const auto keep = shared_from_this();
    queued_.reset();
    next_attempt_.reset();
    if (!granted) granted = std::unexpected(end_of_wait(granted.error(), {terms_.wait > milliseconds{0}, is_over_}));
    complete(done_, std::move(granted));
    calls_.ended(keep);
}

}  // namespace holdfast::client
