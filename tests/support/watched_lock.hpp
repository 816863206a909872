#pragma once

#include "holdfast/store.hpp"
#include "support/matchers.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>

namespace holdfast::tests {

/// A subscription and what it was told.
class WatchedLock {
public:
    WatchedLock(Store& store, const Watch& watch)
        : subscription_(must(store.subscribe(watch, [this](Result<std::optional<HandedOn>> result) {
              result_.set_value(std::move(result));
              fired_ = true;
          }))) {}

    [[nodiscard]] bool has_fired() const { return fired_; }
    /// Waits for it.
    [[nodiscard]] bool fires() { return future_.wait_for(std::chrono::seconds{20}) == std::future_status::ready; }
    [[nodiscard]] Result<std::optional<HandedOn>> result() { return future_.get(); }

private:
    std::promise<Result<std::optional<HandedOn>>> result_{};
    std::future<Result<std::optional<HandedOn>>> future_ = result_.get_future();
    std::atomic<bool> fired_ = false;
    std::unique_ptr<Subscription> subscription_;  ///< Ends before what its function uses.
};

}  // namespace holdfast::tests
