#pragma once

#include "holdfast/async.hpp"
#include "support/time_limit.hpp"

#include <future>
#include <memory>
#include <stdexcept>

namespace holdfast::tests {

/// The result of an asynchronous call, for a test that waits for it.
template <class T>
class Answer {
public:
    CompletionHandler<T> handler() {
        return [promise = promise_](Result<T> result) { promise->set_value(std::move(result)); };
    }
    /// Throws when it does not come.
    [[nodiscard]] Result<T> get() {
        if (future_.wait_for(time_limit) != std::future_status::ready)
            throw std::runtime_error("waited too long for an answer");
        return future_.get();
    }
    [[nodiscard]] bool is_there() const {
        return future_.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
    }

private:
    std::shared_ptr<std::promise<Result<T>>> promise_ = std::make_shared<std::promise<Result<T>>>();
    std::future<Result<T>> future_ = promise_->get_future();
};

}  // namespace holdfast::tests
