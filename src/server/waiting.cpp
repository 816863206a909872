#include "server/waiting.hpp"

#include "server/asked.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::server {
namespace {

using std::chrono::milliseconds;

/// After a full queue: to ask again, or to give the place up.
constexpr milliseconds pause_before_next_try{100};
constexpr milliseconds time_to_withdraw{2'000};

}  // namespace

/// One request that waits. It asks, sleeps until the store calls or it has to keep its place, and asks again.
class WaitingRoom::Waiter : public std::enable_shared_from_this<Waiter> {
public:
    Waiter(WaitingRoom& room, ExchangePtr exchange, const Acquire& request, milliseconds wait)
        : room_(room),
          services_(room.services_),
          exchange_(std::move(exchange)),
          turn_(request, services_.clock),
          deadline_(Deadline::in(services_.clock, wait)) {}

    void start() {
        exchange_->on_gone([weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->give_up();
        });
        ask();
    }

    /// The client is gone, or the daemon stops. A request that is under way comes first, because it may be a grant.
    void give_up() {
        is_over_ = true;
        if (is_asleep_) withdraw();
    }

private:
    void ask() {
        wake();
        if (!is_still_allowed()) return withdraw();
        // Before the time to ask, which is that of the credentials that are sent.
        std::vector<Request> requests = turn_.ask();
        const bool taken = services_.batcher.submit(
            std::move(requests), turn_.time_to_ask(), [self = shared_from_this()](const Applied& applied) {
                self->info_ = applied.store;
                self->answered(self->turn_.answered(applied.replies, applied.sent_at));
            });
        if (!taken) answered(fail(Errc::store_unavailable, "too many requests wait for the store"));
    }

    /// A token can be revoked while its owner waits.
    [[nodiscard]] bool is_still_allowed() {
        const auto who = services_.authorizer.again(exchange_->who);
        const auto allowed = who ? permit(*who, turn_.request()) : std::unexpected(who.error());
        if (!allowed) refusal_ = allowed.error();
        return allowed.has_value();
    }

    void answered(Result<client::Granted> granted) {
        if (granted && !is_over_) return finish(Reply(*granted));
        if (granted) return withdraw();
        if (turn_.asks_again() && !is_over_) return ask();
        refusal_ = granted.error();
        if (!client::QueuedAcquire::is_passing(refusal_->code)) return finish(std::unexpected(*refusal_));
        if (is_over_ || deadline_.passed(services_.clock)) return withdraw();
        sleep();
    }

    void sleep() {
        is_asleep_ = true;
        const milliseconds nap = std::max(turn_.nap(*refusal_), pause_before_next_try);
        timer_ = services_.loop.after(std::min(nap, deadline_.remaining(services_.clock)),
                                      [self = weak_from_this()] { call(self, &Waiter::ask_or_leave); });
        const auto watch = turn_.watch(*refusal_);
        if (!watch) return;
        // Called by the store's thread, perhaps before this returns.
        auto subscribed =
            services_.store.subscribe(*watch, [&loop = services_.loop, weak = weak_from_this(),
                                               turn = ++sleeps_](const Result<std::optional<HandedOn>>& fired) {
                const bool is_handed_on = fired && *fired;
                loop.post([weak, turn, is_handed_on] {
                    if (const auto self = weak.lock()) self->called(turn, is_handed_on);
                });
            });
        if (subscribed) subscription_ = std::move(*subscribed);
    }

    /// By a store: the lock was handed over, or may be free. `turn` tells a late call from one for this sleep.
    void called(std::uint64_t turn, bool is_handed_on) {
        if (!is_asleep_ || turn != sleeps_) return;
        if (is_handed_on)
            extend();
        else
            ask();
    }

    static void call(const std::weak_ptr<Waiter>& weak, void (Waiter::*method)()) {
        if (const auto self = weak.lock()) ((*self).*method)();
    }

    void ask_or_leave() {
        if (deadline_.passed(services_.clock))
            withdraw();
        else
            ask();
    }

    /// The lease lasts as long as the place in the queue would have, until it is renewed.
    void extend() {
        wake();
        // The lock was handed on already. It is given back.
        if (!is_still_allowed()) return withdraw();
        const bool taken = services_.batcher.submit(
            {turn_.extension()}, turn_.time_to_ask(), [self = shared_from_this()](const Applied& applied) {
                self->info_ = applied.store;
                const bool is_ours = applied.replies && applied.replies->front();
                if (is_ours && !self->is_over_) return self->finish(applied.replies->front());
                if (self->is_over_) return self->withdraw();
                self->ask();
            });
        if (!taken) sleep();
    }

    void withdraw() {
        wake();
        const bool taken =
            services_.batcher.submit(turn_.withdrawal(), Deadline::in(services_.clock, time_to_withdraw),
                                     [self = shared_from_this()](const Applied& applied) {
                                         const auto left = self->turn_.withdrawn(applied.replies);
                                         self->info_ = applied.store;
                                         self->finish(std::unexpected(left ? self->last_refusal() : left.error()));
                                     });
        if (taken) return;
        timer_ = services_.loop.after(pause_before_next_try, [self = shared_from_this()] { self->withdraw(); });
    }

    [[nodiscard]] Error last_refusal() const {
        if (services_.is_stopping) return {Errc::store_unavailable, "the daemon is stopping; ask again"};
        if (refusal_) return *refusal_;
        return {Errc::store_unavailable, "the client is gone"};
    }

    void wake() {
        is_asleep_ = false;
        timer_.reset();
        subscription_.reset();
    }

    void finish(const Reply& reply) {
        const auto self = shared_from_this();
        wake();
        if (info_)
            exchange_->reply(answer_to(turn_.request(), reply, *info_));
        else
            exchange_->reply(reply_with(reply.error()));
        room_.leave(self);
    }

    WaitingRoom& room_;
    Services& services_;
    ExchangePtr exchange_;
    client::QueuedAcquire turn_;
    const Deadline deadline_;
    bool is_over_ = false;    ///< Nobody waits for the answer.
    bool is_asleep_ = false;  ///< No request is under way.
    std::uint64_t sleeps_ = 0;
    std::optional<Error> refusal_{};
    std::shared_ptr<const StoreInfo> info_{};
    std::unique_ptr<Subscription> subscription_{};
    Loop::Timer timer_{};
};

WaitingRoom::~WaitingRoom() = default;

void WaitingRoom::admit(const ExchangePtr& exchange, const Acquire& request, milliseconds wait) {
    const auto waiter = std::make_shared<Waiter>(*this, exchange, request, wait);
    waiters_.insert(waiter);
    services_.observer.waiters(waiters_.size());
    waiter->start();
}

void WaitingRoom::leave(const std::shared_ptr<Waiter>& waiter) {
    waiters_.erase(waiter);
    services_.observer.waiters(waiters_.size());
}

void WaitingRoom::stop() {
    const std::vector<std::shared_ptr<Waiter>> all(waiters_.begin(), waiters_.end());
    for (const auto& waiter : all) waiter->give_up();
}

}  // namespace holdfast::server
