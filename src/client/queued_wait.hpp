#pragma once

#include "client/batcher.hpp"
#include "client/loop.hpp"
#include "client/queued_acquire.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace holdfast::client {

/// How a wait without a thread goes on, and what it tells meanwhile.
struct WaitTerms {
    Deadline deadline{};
    /// As `Patience::blocked` and `Patience::enough`.
    std::function<void(const Error& cause)> blocked{};
    std::optional<std::chrono::milliseconds> enough{};
    /// Asked before each request; an error ends the wait. Empty: always allowed.
    std::function<Result<void>(const Acquire& request)> allowed{};
};

/// How such a wait has ended.
struct EndedWait {
    Result<Granted> granted;   ///< Or the last refusal: then nothing is held, and no place in the queue is left.
    bool is_given_up = false;  ///< Refused because nobody waits any more.
    std::shared_ptr<const StoreInfo> store{};  ///< As it was when it answered; absent if it was never asked.
};

/// One acquire that waits without a thread: it asks, sleeps until the store calls or it has to keep its place, and asks
/// again. Only on the loop. Its owner keeps it until it has ended.
class QueuedWait : public std::enable_shared_from_this<QueuedWait> {
public:
    using Done = std::move_only_function<void(EndedWait ended)>;

    /// All must outlive it.
    QueuedWait(Loop& loop, Batcher& batcher, Store& store, const Acquire& request, WaitTerms terms, Done done);

    void start();

    /// Nobody waits any more: the place is given up, and a grant is given back. A request that is under way comes
    /// first, because it may be a grant.
    void give_up();

    [[nodiscard]] const Acquire& request() const { return turn_.request(); }

private:
    void ask();
    [[nodiscard]] bool is_still_allowed();
    void answered(Result<Granted> granted);
    void sleep();
    void called(std::uint64_t sleep, std::optional<HandedOn> handed_on);
    void ask_or_leave();
    void extend();
    void withdraw();
    void withdrawn(const Result<std::vector<Reply>>& replies);
    void wake();
    void finish(Result<Granted> granted, bool is_given_up = false);
    static void call(const std::weak_ptr<QueuedWait>& weak, void (QueuedWait::*method)());

    Loop& loop_;
    Batcher& batcher_;
    Store& store_;
    QueuedAcquire turn_;
    const WaitTerms terms_;
    Done done_;
    bool is_over_ = false;    ///< Nobody waits for the answer.
    bool is_asleep_ = false;  ///< No request is under way.
    bool is_held_ = false;    ///< Granted after it was given up: not given back yet.
    std::uint64_t sleeps_ = 0;
    std::optional<Error> refusal_{};
    std::shared_ptr<const StoreInfo> info_{};
    std::unique_ptr<Subscription> subscription_{};
    Loop::Timer timer_{};
};

}  // namespace holdfast::client
