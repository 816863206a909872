#include "client/async_calls.hpp"

#include "client/renewal_batches.hpp"

#include <fmt/format.h>

#include <cassert>
#include <chrono>
#include <limits>
#include <vector>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// Nobody is refused because others wait: the program decides how many calls it begins.
constexpr Batcher::Limits limits{.waiting = std::numeric_limits<std::size_t>::max(),
                                 .batch = largest_batch,
                                 .under_way = 4,
                                 .slow = milliseconds{50}};

/// A release tries again, while a renewal of its lease is under way.
constexpr milliseconds pause_for_renewal{5};

}  // namespace

Reply reply_in(const Applied& applied) {
    if (!applied.replies) return std::unexpected(applied.replies.error());
    return applied.replies->front();
}

AsyncCalls::AsyncCalls(Store& store, std::shared_ptr<Renewer> renewer)
    : store_(store),
      loop_(std::make_shared<TurnLoop>(std::move(renewer), store.clock())),
      batcher_(
          *loop_, [this](std::function<void()> call) { return loop_->run(std::move(call)); }, store, unobserved_,
          limits) {}

void AsyncCalls::submit(std::vector<Request> requests, Deadline deadline, Batcher::Done done) {
    [[maybe_unused]] const bool is_taken = batcher_.submit(std::move(requests), deadline, std::move(done));
    assert(is_taken);
}

bool AsyncCalls::open() {
    const std::scoped_lock lock(mutex_);
    if (is_closed_) return false;
    ++open_;
    return true;
}

/// In a turn of its own, so that whatever ended the call has returned before the loop is closed.
void AsyncCalls::count_ended() {
    loop_->post([self = shared_from_this()] {
        const std::scoped_lock lock(self->mutex_);
        if (--self->open_ == 0) self->all_ended_.notify_all();
    });
}

void AsyncCalls::start(std::shared_ptr<PendingCall> call) {
    loop_->post([this, call = std::move(call)] {
        calls_.insert(call);
        if (is_closing_) call->give_up();
        call->start();
    });
}

void AsyncCalls::ended(const std::shared_ptr<PendingCall>& call) {
    calls_.erase(call);
    count_ended();
}

void AsyncCalls::close() {
    loop_->post([self = shared_from_this()] {
        self->is_closing_ = true;
        const std::vector<std::shared_ptr<PendingCall>> all(self->calls_.begin(), self->calls_.end());
        for (const auto& call : all) call->give_up();
    });
    {
        std::unique_lock lock(mutex_);
        all_ended_.wait(lock, [&] { return open_ == 0; });
        is_closed_ = true;
    }
    loop_->close();
}

/// Runs a call that waits for others on a thread of its own, and then `after` on the loop.
void AsyncCalls::run(std::function<void()> call, std::function<void()> after) {
    loop_->run([loop = loop_, call = std::move(call), after = std::move(after)] {
        call();
        loop->finish(after);
    });
}

struct AsyncCalls::Releasing {
    std::shared_ptr<AsyncCalls> calls;
    std::shared_ptr<Hold> hold;
    CompletionHandler<void> done;
    Result<std::optional<Release>> request{};
    bool is_repeated = false;
    Loop::Timer next_try{};

    [[nodiscard]] Hold::Core& core() const { return *hold->core_; }
    void end(const Result<void>& result) {
        core().leave_renewer();
        if (done) complete(done, result);
        calls->count_ended();
    }
};

void AsyncCalls::release(const std::shared_ptr<Hold>& hold, CompletionHandler<void> done) {
    const auto releasing = std::make_shared<Releasing>(shared_from_this(), hold, std::move(done));
    loop_->post([this, releasing] { stop_renewing(releasing); });
}

/// Nothing may wait on the loop, and no thread for a renewal that needs one itself.
void AsyncCalls::stop_renewing(const std::shared_ptr<Releasing>& releasing) {
    Hold::Core& core = releasing->core();
    if (!core.try_stop_renewing()) {
        releasing->next_try = loop_->after(pause_for_renewal, [this, releasing] { stop_renewing(releasing); });
        return;
    }
    const auto begin = [releasing] { releasing->request = releasing->core().begin_release(); };
    const auto send = [this, releasing] { send_release(releasing); };
    // The user's code may block.
    if (core.has_callbacks()) return run(begin, send);
    begin();
    send();
}

void AsyncCalls::send_release(const std::shared_ptr<Releasing>& releasing) {
    releasing->next_try.reset();
    if (!releasing->request) return releasing->end(std::unexpected(releasing->request.error()));
    if (!*releasing->request) return releasing->end({});
    const Deadline until = Deadline::in(store_.clock(), Hold::Core::release_timeout);
    submit({**releasing->request}, until, [this, releasing](const Applied& applied) {
        const Reply reply = reply_in(applied);
        // Repeating a release is harmless, and the answer may be what got lost.
        const bool is_unknown = !reply && reply.error().code == Errc::outcome_unknown;
        if (is_unknown && !std::exchange(releasing->is_repeated, true)) return send_release(releasing);
        releasing->end(releasing->core().finish_release(reply));
    });
}

void AsyncCalls::make_hold(const HoldOptions& options, Granted granted, CompletionHandler<AsyncHold>& done) {
    const LockName name = granted.lock.name;
    HoldOptions own = options;
    // Not the thread but the program's own tasks hold locks here.
    own.order_check = OrderCheck::off;
    auto registration = LockOrder::enter(store_, name, false, own);
    if (!registration) return complete(done, Result<AsyncHold>(std::unexpected(registration.error())));
    auto core = std::make_unique<Hold::Core>(store_, own, std::move(granted), std::move(*registration),
                                             Hold::Core::AtEnd::release);
    // The answer took longer than the lease lasts: nobody may act on it.
    const bool is_late = own.clock->boottime() >= core->lease().deadline();
    const Result<void> started =
        is_late ? fail(Errc::lock_expired, fmt::format("{} was granted too late to be used", name.text()))
                : core->start();
    const std::shared_ptr<Hold> hold(new Hold(std::move(core)));
    if (started) return complete(done, Result<AsyncHold>(AsyncHold(shared_from_this(), hold)));
    open();
    release(hold,
            [done = std::move(done), started](const Result<void>&) mutable { done(std::unexpected(started.error())); });
}

}  // namespace holdfast::client
