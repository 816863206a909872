#pragma once

#include "client/loop.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

namespace holdfast::client {

/// What came of the requests of one call.
struct Applied {
    Result<std::vector<Reply>> replies;
    std::shared_ptr<const StoreInfo> store;
    Boottime sent_at{};  ///< Before they left: leases are counted from here.
};

/// Hears what a `Batcher` does. Called on the loop, so it must not block.
class BatchObserver {
public:
    BatchObserver() = default;
    BatchObserver(const BatchObserver&) = delete;
    BatchObserver& operator=(const BatchObserver&) = delete;
    virtual ~BatchObserver() = default;

    /// A batch came back from the store: what was sent, and the answers or the error of the whole call.
    virtual void applied(std::span<const Request> /*requests*/, const Result<std::vector<Reply>>& /*replies*/,
                         std::chrono::microseconds /*time*/) {}
    /// A request waits for the next batch, or was refused because too many do.
    virtual void queued(std::size_t /*waiting*/) {}
    virtual void refused_at_queue() {}
};

/// Requests that arrive while a batch is under way form the next one. So load turns into larger batches, and a request
/// that comes alone is sent at once.
///
/// A batch is as slow as the slowest of its locks. One that takes long gets another one beside it, for other locks: the
/// requests for one lock are sent in their order, and one lock that is stuck holds up no other. Only on the loop.
class Batcher {
public:
    using Done = std::move_only_function<void(Applied applied)>;
    /// Runs a call that blocks on another thread. False, and it is not run, if none can be had.
    using RunCall = std::function<bool(std::function<void()> call)>;
    struct Limits {
        std::size_t waiting = 10'000;  ///< Requests.
        std::size_t batch = 1'000;     ///< Requests.
        std::size_t under_way = 4;     ///< Batches.
        std::chrono::milliseconds slow{20};
    };

    /// `run` needs as many threads as there may be batches under way. All must outlive it.
    Batcher(Loop& loop, RunCall run, Store& store, BatchObserver& observer, const Limits& limits);

    /// Sends `requests` in one call of the store, perhaps with others. False, and `done` is not called, if too many
    /// wait. What is still waiting at the deadline is not sent any more: `store_unavailable`.
    [[nodiscard]] bool submit(std::vector<Request> requests, Deadline deadline, Done done);

    /// Called after each batch that may have changed something.
    void on_applied(std::function<void()> applied) { applied_ = std::move(applied); }

    [[nodiscard]] bool is_idle() const { return under_way_.empty() && calls_.empty(); }

private:
    struct Call {
        std::vector<Request> requests{};  ///< Moved to their batch while that is under way.
        Deadline deadline{};
        Done done;
    };
    struct Batch {
        std::vector<Call> calls{};
        std::vector<Request> requests{};
        Deadline deadline{};
        Boottime sent_at{};
        std::chrono::steady_clock::time_point started{};
    };

    void send_next();
    [[nodiscard]] std::shared_ptr<Batch> take_batch();
    [[nodiscard]] bool is_busy(const Call& call) const;
    void send(const std::shared_ptr<Batch>& batch);
    void finish(const std::shared_ptr<Batch>& batch, Result<std::vector<Reply>> replies,
                std::shared_ptr<const StoreInfo> info);
    void deliver(Batch& batch, Result<std::vector<Reply>>& replies, const std::shared_ptr<const StoreInfo>& info);
    void give_up(Call& call);

    Loop& loop_;
    const RunCall run_;
    Store& store_;
    BatchObserver& observer_;
    const Limits limits_;
    std::deque<Call> calls_{};  ///< Waiting.
    std::size_t waiting_ = 0;   ///< Their requests.
    std::set<std::shared_ptr<Batch>> under_way_{};
    std::multiset<LockName> busy_{};  ///< The locks of the batches under way.
    Loop::Timer slow_{};              ///< Since the last batch was sent.
    bool may_overtake_ = false;       ///< The last batch takes long.
    std::function<void()> applied_{};
    std::shared_ptr<const StoreInfo> info_{};  ///< As it was last seen.
};

}  // namespace holdfast::client
