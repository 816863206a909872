#pragma once

#include "holdfast/store.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace holdfast::stores {

/// Threads of one process that ask a store at the same time share a batch: while some requests are on their way the
/// others gather, and go together. So load turns into larger batches, and not into more round trips.
///
/// For stores where one lock cannot hold up another: a batch is as slow as the slowest of its locks. May be called from
/// any thread.
class Gathering {
public:
    using Apply = std::function<Result<std::vector<Reply>>(std::span<const Request>, Deadline)>;

    /// `apply` is called from the threads that ask. `clock` must outlive the gathering.
    Gathering(const Clock& clock, Apply apply);
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;
    ~Gathering();

    /// As `Store::apply`. A failure that changed nothing is not shared: everybody then asks alone.
    [[nodiscard]] Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline);

private:
    struct Call;
    class UnderWay;
    using Group = std::vector<std::shared_ptr<Call>>;

    /// Those that go with `first`, which no longer wait from now on. Needs mutex_.
    [[nodiscard]] Group take(const std::shared_ptr<Call>& first);
    /// Asks for all of them, and tells them.
    void lead(const Group& group);
    void arrive(const Group& group, const Result<std::vector<Reply>>& replies);
    /// Makes room for the next batch.
    void leave();
    /// Stops waiting to be taken. False if it has been.
    [[nodiscard]] bool withdraw(const std::shared_ptr<Call>& call);

    const Clock& clock_;
    const Apply apply_;
    std::mutex mutex_;
    std::size_t under_way_ = 0;                    ///< Guarded by mutex_.
    std::deque<std::shared_ptr<Call>> waiting_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
