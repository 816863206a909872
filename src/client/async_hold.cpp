#include "client/async_calls.hpp"
#include "holdfast/async.hpp"

#include <utility>

namespace holdfast {
namespace {

using client::AsyncCalls;

/// Until a hold is lost, or over.
class LossWait final : public client::PendingCall {
public:
    using Done = std::move_only_function<void(Error why)>;

    LossWait(AsyncCalls& calls, std::shared_ptr<Hold> hold, std::stop_token over, std::stop_token cancel, Done done)
        : calls_(calls),
          hold_(std::move(hold)),
          over_(std::move(over)),
          cancel_(std::move(cancel)),
          done_(std::move(done)) {}

    void start() override {
        if (is_over_) return;
        on_loss_.watch(hold_->lost(), calls_, weak_from_this());
        on_end_.watch(over_, calls_, weak_from_this());
        on_cancel_.watch(cancel_, calls_, weak_from_this());
    }
    void give_up() override {
        if (std::exchange(is_over_, true)) return;
        const auto keep = shared_from_this();
        const auto loss = hold_->loss();
        hold_.reset();
        client::complete(done_, loss.value_or(Error{Errc::cancelled, "it was not lost while this was waited for"}));
        calls_.ended(keep);
    }

private:
    AsyncCalls& calls_;
    std::shared_ptr<Hold> hold_;
    const std::stop_token over_;
    const std::stop_token cancel_;
    Done done_;
    bool is_over_ = false;
    client::GiveUpOnStop on_loss_{};
    client::GiveUpOnStop on_end_{};
    client::GiveUpOnStop on_cancel_{};
};

}  // namespace

AsyncHold::AsyncHold(std::shared_ptr<AsyncCalls> calls, std::shared_ptr<Hold> hold)
    : calls_(std::move(calls)), hold_(std::move(hold)) {}
AsyncHold::AsyncHold(AsyncHold&&) noexcept = default;
AsyncHold& AsyncHold::operator=(AsyncHold&& other) noexcept {
    end();
    calls_ = std::move(other.calls_);
    hold_ = std::move(other.hold_);
    over_ = std::move(other.over_);
    is_released_ = other.is_released_;
    return *this;
}
AsyncHold::~AsyncHold() { end(); }

void AsyncHold::wait_for_loss(std::stop_token cancel, std::move_only_function<void(Error why)> done) const {
    // Counted first, so that `done` is still here if nothing can begin.
    if (calls_->open())
        calls_->start(
            std::make_shared<LossWait>(*calls_, hold_, over_.get_token(), std::move(cancel), std::move(done)));
    else
        done({Errc::cancelled, "the AsyncStore has ended"});
}

void AsyncHold::release(CompletionHandler<void> done) {
    is_released_ = true;
    over_.request_stop();
    if (calls_->open())
        calls_->release(hold_, std::move(done));
    else
        done(Result<void>(hold_->release()));
}

/// Where the AsyncStore has ended before, the hold gives its lock back itself.
void AsyncHold::end() {
    if (!hold_) return;
    over_.request_stop();
    if (!std::exchange(is_released_, true) && calls_->open()) calls_->release(hold_, {});
    hold_.reset();
}

}  // namespace holdfast
