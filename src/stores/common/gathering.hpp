#pragma once

#include "stores/common/attempt.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::stores {

/// Threads of one process that call a store at the same time share a batch: while some requests are on their way, the
/// others gather and are sent together. So load turns into larger batches, and not into more round trips.
///
/// A batch is as slow as the slowest of its locks, so a shared batch must not wait for a row that another client has
/// locked: a call for such a lock is sent alone, and delays no other. May be called from any thread.
class Gathering {
public:
    using Apply = std::function<AttemptResult(std::span<const Request>, Deadline, Busy)>;
    using ApplyWithoutRows = std::function<Result<std::vector<Reply>>(std::span<const Request>, Deadline)>;

    /// `apply` is called from the callers' threads. For a shared batch it reports busy locks (`locks_busy`); a call
    /// that finds no other under way is sent alone, and may wait for them. `clock` must outlive the gathering.
    Gathering(const Clock& clock, Apply apply) : Gathering(clock, std::move(apply), true) {}
    /// For a store without rows to wait for.
    Gathering(const Clock& clock, const ApplyWithoutRows& apply);
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;
    ~Gathering();

    /// As `Store::apply`. A failure that changed nothing is not shared: each call is then sent alone.
    [[nodiscard]] Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline);

private:
    class Call;
    class UnderWay;
    Gathering(const Clock& clock, Apply apply, bool may_wait);
    using Group = std::vector<std::shared_ptr<Call>>;

    /// `first` and the calls that share its batch. They no longer wait from now on. Needs mutex_.
    [[nodiscard]] Group take(const std::shared_ptr<Call>& first);
    /// Sends the batch of all of them, and hands out the answers.
    void send(Group group);
    [[nodiscard]] AttemptResult call_together(const Group& group);
    /// Removes the calls for one of `locks` from the group, so that they are sent alone. False if there are none.
    [[nodiscard]] bool drop_calls_for(Group& group, const std::vector<LockName>& locks);
    void deliver(const Group& group, AttemptResult result);
    /// Whether a batch of so many should be sent now. Needs mutex_.
    [[nodiscard]] bool should_send(std::size_t calls) const;
    /// Counts a batch that is sent. Needs mutex_.
    void count_sent(std::size_t calls);
    /// Makes room for the next batch.
    void count_returned(std::size_t calls);
    [[nodiscard]] Result<std::vector<Reply>> call_alone(std::span<const Request> requests, Deadline deadline);
    /// Stops waiting. False if a batch has taken the call.
    [[nodiscard]] bool withdraw(const std::shared_ptr<Call>& call);

    const Clock& clock_;
    const Apply apply_;
    const bool may_wait_;  ///< Whether a call that is sent alone may wait for rows.
    std::mutex mutex_;
    bool one_is_alone_ = false;                    ///< Guarded by mutex_. A call was sent alone, as there was no other.
    std::size_t under_way_ = 0;                    ///< Guarded by mutex_. Batches,
    std::size_t calls_under_way_ = 0;              ///< Guarded by mutex_. and the calls in them.
    std::deque<std::shared_ptr<Call>> waiting_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
