#pragma once

#include "client/async_calls.hpp"
#include "client/queued_wait.hpp"
#include "holdfast/hold.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace holdfast::client {

/// How a lock is asked for.
struct AcquireTerms {
    std::chrono::milliseconds wait{0};  ///< In the queue.
    Retry retry{};                      ///< Without a wait.
    std::stop_token cancel{};
    /// As `Patience::blocked` and `Patience::enough`.
    std::function<void(const Error& cause)> blocked{};
    std::optional<std::chrono::milliseconds> enough{};
};

/// Takes a lock, in the queue or at once. Ends as `hold` does.
class AcquireCall final : public PendingCall {
public:
    using Done = std::move_only_function<void(Result<Granted> granted)>;

    AcquireCall(AsyncCalls& calls, Acquire request, AcquireTerms terms, Done done);

    void start() override;
    void give_up() override;

private:
    [[nodiscard]] std::shared_ptr<AcquireCall> self();
    void wait_in_queue();
    void ask();
    void answered(const Reply& reply, Boottime sent_at);
    void give_back();
    void finish(Result<Granted> granted);

    AsyncCalls& calls_;
    const Acquire request_;
    const AcquireTerms terms_;
    Done done_;
    GiveUpOnStop on_stop_{};
    bool is_over_ = false;  ///< Given up.
    std::shared_ptr<QueuedWait> queued_{};
    unsigned attempts_ = 0;  ///< Made after the first.
    std::optional<Error> refusal_{};
    Loop::Timer next_attempt_{};
};

}  // namespace holdfast::client
