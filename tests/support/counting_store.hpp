#pragma once

#include "holdfast/store.hpp"

#include <atomic>

namespace holdfast::tests {

/// A real store that counts who goes to sleep and who comes back.
class CountingStore final : public Store {
public:
    explicit CountingStore(Store& inner) : inner_(inner) {}

    std::atomic<int> asleep = 0;  ///< How often anybody began to wait.
    std::atomic<int> woken = 0;

    Result<void> wait_for_change(const Watch& watch, Deadline deadline) override {
        ++asleep;
        asleep.notify_all();
        auto waited = inner_.wait_for_change(watch, deadline);
        ++woken;
        return waited;
    }
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        return inner_.apply(requests, deadline);
    }
    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return inner_.inspect(name, deadline);
    }
    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        return inner_.list(query, deadline);
    }
    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        return inner_.history(query, deadline);
    }
    StoreInfo info() const override { return inner_.info(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_.examine(deadline); }

private:
    Store& inner_;
};

}  // namespace holdfast::tests
