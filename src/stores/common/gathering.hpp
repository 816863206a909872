#pragma once

#include "stores/common/attempt.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::stores {

/// Threads of one process that ask a store at the same time share a batch: while some requests are on their way the
/// others gather, and go together. So load turns into larger batches, and not into more round trips.
///
/// A batch is as slow as the slowest of its locks, so whatever is shared must not wait for a lock that somebody else
/// has in hand: who asks for such a lock is sent alone, and holds up nobody. May be called from any thread.
class Gathering {
public:
    using Together = std::function<AttemptResult(std::span<const Request>, Deadline)>;
    using Alone = std::function<Result<std::vector<Reply>>(std::span<const Request>, Deadline)>;

    /// Both are called from the threads that ask. `together` does not wait for locks: it ends with `locks_busy`;
    /// `alone` may wait. A caller that asks while nobody else does goes alone. `clock` must outlive the gathering.
    Gathering(const Clock& clock, Together together, Alone alone);
    /// For a store where no lock is ever waited for.
    Gathering(const Clock& clock, const Alone& apply);
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;
    ~Gathering();

    /// As `Store::apply`. A failure that changed nothing is not shared: everybody then asks alone.
    [[nodiscard]] Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline);

private:
    class Call;
    class UnderWay;
    Gathering(const Clock& clock, Together together, Alone alone, bool may_wait);
    using Group = std::vector<std::shared_ptr<Call>>;

    /// Those that go with `first`, which no longer wait from now on. Needs mutex_.
    [[nodiscard]] Group take(const std::shared_ptr<Call>& first);
    /// Asks for all of them, and tells them.
    void lead(Group group);
    [[nodiscard]] AttemptResult ask(const Group& group);
    /// Takes those out of the group who ask for one of `locks`, and sends them alone. False if there are none.
    [[nodiscard]] bool send_away(Group& group, const std::vector<LockName>& locks);
    void arrive(const Group& group, AttemptResult result);
    /// Whether a batch of so many should go now. Needs mutex_.
    [[nodiscard]] bool is_worth_it(std::size_t calls) const;
    /// A batch goes. Needs mutex_.
    void enter(std::size_t calls);
    /// Makes room for the next batch.
    void leave(std::size_t calls);
    [[nodiscard]] Result<std::vector<Reply>> go_alone(std::span<const Request> requests, Deadline deadline);
    /// Stops waiting to be taken. False if it has been.
    [[nodiscard]] bool withdraw(const std::shared_ptr<Call>& call);

    const Clock& clock_;
    const Together together_;
    const Alone alone_;
    const bool may_wait_;  ///< Whether the two differ.
    std::mutex mutex_;
    bool one_waits_ = false;           ///< Guarded by mutex_. Somebody went alone, as there was nobody else.
    std::size_t under_way_ = 0;        ///< Guarded by mutex_. Batches,
    std::size_t calls_under_way_ = 0;  ///< Guarded by mutex_. and the calls in them.
    std::deque<std::shared_ptr<Call>> waiting_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
