#include "client/async_acquire.hpp"
#include "client/async_calls.hpp"
#include "client/hold_terms.hpp"
#include "holdfast/async.hpp"

#include <utility>

namespace holdfast {
namespace {

using client::AsyncCalls;
using std::chrono::milliseconds;

/// Until a lock may have changed.
class ChangeWait final : public client::PendingCall {
public:
    ChangeWait(AsyncCalls& calls, Watch watch, Deadline deadline, CompletionHandler<std::optional<HandedOn>> done)
        : calls_(calls), watch_(std::move(watch)), deadline_(deadline), done_(std::move(done)) {}

    void start() override {
        if (is_over_) return;
        on_stop_.watch(watch_.stop, calls_, weak_from_this());
        timer_ = calls_.loop().after(deadline_.remaining(calls_.store().clock()),
                                     [weak = weak_from_this()] { end(weak, std::nullopt); });
        // Called by the store's thread, perhaps before this returns.
        auto subscribed = calls_.store().subscribe(
            watch_, [&loop = calls_.loop(), weak = weak_from_this()](Result<std::optional<HandedOn>> fired) {
                loop.post([weak, fired = std::move(fired)]() mutable { end(weak, std::move(fired)); });
            });
        if (!subscribed) return finish(std::unexpected(subscribed.error()));
        subscription_ = std::move(*subscribed);
    }
    void give_up() override { finish(fail(Errc::cancelled, "the wait was cancelled")); }

private:
    static void end(const std::weak_ptr<PendingCall>& weak, Result<std::optional<HandedOn>> result) {
        if (const auto call = weak.lock()) static_cast<ChangeWait&>(*call).finish(std::move(result));
    }
    void finish(Result<std::optional<HandedOn>> result) {
        if (std::exchange(is_over_, true)) return;
        const auto keep = shared_from_this();
        subscription_.reset();
        timer_.reset();
        client::complete(done_, std::move(result));
        calls_.ended(keep);
    }

    AsyncCalls& calls_;
    const Watch watch_;
    const Deadline deadline_;
    CompletionHandler<std::optional<HandedOn>> done_;
    client::GiveUpOnStop on_stop_{};
    bool is_over_ = false;
    std::unique_ptr<Subscription> subscription_{};
    client::Loop::Timer timer_{};
};

/// What a hold is made of when its lock is granted.
struct Taking {
    Taking(LockName name_to_take, HoldOptions options_to_hold, CompletionHandler<AsyncHold> handler)
        : name(std::move(name_to_take)), options(std::move(options_to_hold)), done(std::move(handler)) {}

    const LockName name;
    const HoldOptions options;
    CompletionHandler<AsyncHold> done;
    client::BlockedNotice notice{options, name};
};

}  // namespace

Result<AsyncStore> AsyncStore::start(Store& store) {
    auto renewer = client::Renewer::of(store, store.clock());
    if (auto started = renewer->start(); !started) return std::unexpected(started.error());
    return AsyncStore(std::make_shared<AsyncCalls>(store, std::move(renewer)));
}

AsyncStore::AsyncStore(std::shared_ptr<AsyncCalls> calls) : calls_(std::move(calls)) {}
AsyncStore::AsyncStore(AsyncStore&&) noexcept = default;
AsyncStore& AsyncStore::operator=(AsyncStore&& other) noexcept {
    if (calls_) calls_->close();
    calls_ = std::move(other.calls_);
    return *this;
}
AsyncStore::~AsyncStore() {
    if (calls_) calls_->close();
}

Store& AsyncStore::store() const { return calls_->store(); }

void AsyncStore::apply(std::vector<Request> requests, Deadline deadline, CompletionHandler<std::vector<Reply>> done) {
    calls_->open();
    calls_->loop().post([&calls = *calls_, requests = std::move(requests), deadline, done = std::move(done)]() mutable {
        calls.submit(std::move(requests), deadline, [&calls, done = std::move(done)](client::Applied applied) mutable {
            client::complete(done, std::move(applied.replies));
            calls.count_ended();
        });
    });
}

void AsyncStore::apply_one(Request request, Deadline deadline, CompletionHandler<Outcome> done) {
    apply({std::move(request)}, deadline, [done = std::move(done)](Result<std::vector<Reply>> replies) mutable {
        if (!replies) return client::complete(done, Reply(std::unexpected(std::move(replies.error()))));
        client::complete(done, std::move(replies->front()));
    });
}

void AsyncStore::acquire(Acquire request, milliseconds wait, std::stop_token cancel, CompletionHandler<Granted> done) {
    client::AcquireTerms terms{.wait = wait, .cancel = std::move(cancel)};
    calls_->open();
    calls_->start(
        std::make_shared<client::AcquireCall>(*calls_, std::move(request), std::move(terms), std::move(done)));
}

void AsyncStore::hold(LockName name, HoldOptions options, CompletionHandler<AsyncHold> done) {
    const auto taking =
        std::make_shared<Taking>(std::move(name), client::with_clock_of(store(), std::move(options)), std::move(done));
    client::AcquireTerms terms{.wait = taking->options.wait,
                               .retry = taking->options.retry,
                               .cancel = taking->options.cancel,
                               .blocked = [taking](const Error& cause) { taking->notice.tell(cause); },
                               .enough = client::least_time_to_renew(taking->options)};
    calls_->loop().post([taking] {
        if (taking->options.observer)
            taking->options.observer({HoldEventKind::acquiring, taking->name, std::nullopt, std::nullopt});
    });
    calls_->open();
    calls_->start(std::make_shared<client::AcquireCall>(
        *calls_, client::acquire_for(taking->name, taking->options), std::move(terms),
        [&calls = *calls_, taking](Result<Granted> granted) {
            if (granted) return calls.make_hold(taking->options, *std::move(granted), taking->done);
            client::complete(taking->done, Result<AsyncHold>(std::unexpected(granted.error())));
        }));
}

void AsyncStore::wait_for_change(Watch watch, Deadline deadline, CompletionHandler<std::optional<HandedOn>> done) {
    calls_->open();
    calls_->start(std::make_shared<ChangeWait>(*calls_, std::move(watch), deadline, std::move(done)));
}

}  // namespace holdfast
