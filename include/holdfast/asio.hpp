#pragma once

#include "holdfast/async.hpp"

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

/// The calls of `AsyncStore` and `AsyncHold` as asynchronous operations of Boost.Asio (1.81 or newer; not the
/// standalone Asio): for `co_await`, callbacks, futures, and every other completion token. Only a program that includes
/// this header needs Boost; the library does not.
///
/// A result is one value, `void(Result<T>)`, so `co_await` gives a `Result<T>` and throws nothing of Holdfast's.
///
/// A completion handler runs on its associated executor, never on a thread of the library; without one that is Asio's
/// `system_executor`. An exception that leaves it leaves `run()` of its context. Its cancellation slot ends waits, as
/// the stop tokens of `AsyncStore` do: with `cancelled`, or the result if that was there first. A context that ends
/// with operations outstanding destroys their handlers without calling them: waits are given up, and what they were
/// granted is given back.
namespace [[gnu::visibility("default")]] holdfast {

namespace asio_detail {

/// One operation, of any kind.
class AnyOperation {
public:
    AnyOperation() = default;
    AnyOperation(const AnyOperation&) = delete;
    AnyOperation& operator=(const AnyOperation&) = delete;
    virtual ~AnyOperation() = default;
    /// Its context ends: destroys the handler, and gives the call up.
    virtual void drop() = 0;
};

/// The operations of one execution context that have not completed. Whoever takes one out completes or drops it.
class Outstanding {
public:
    /// False once the context has ended.
    [[nodiscard]] bool add(std::shared_ptr<AnyOperation> operation) {
        const std::scoped_lock lock(mutex_);
        if (!has_ended_) operations_.emplace(operation.get(), std::move(operation));
        return !has_ended_;
    }
    /// Calls `post` unless it was dropped. The context does not end before that has returned.
    template <class Post>
    void take_out(const AnyOperation& operation, const Post& post) {
        std::shared_ptr<AnyOperation> ends_outside_the_mutex;
        const std::scoped_lock lock(mutex_);
        const auto found = operations_.find(&operation);
        if (found == operations_.end()) return;
        ends_outside_the_mutex = std::move(found->second);
        operations_.erase(found);
        post();
    }
    void end() {
        std::unordered_map<const AnyOperation*, std::shared_ptr<AnyOperation>> dropped;
        {
            const std::scoped_lock lock(mutex_);
            has_ended_ = true;
            dropped.swap(operations_);
        }
        for (const auto& [key, operation] : dropped) operation->drop();
    }

private:
    std::mutex mutex_;  ///< Guards both.
    std::unordered_map<const AnyOperation*, std::shared_ptr<AnyOperation>> operations_{};
    bool has_ended_ = false;
};

/// Hears of the end of its execution context.
class OutstandingService final : public boost::asio::execution_context::service {
public:
    using key_type = OutstandingService;
    static inline boost::asio::execution_context::id id{};

    explicit OutstandingService(boost::asio::execution_context& context) : service(context) {}
    [[nodiscard]] const std::shared_ptr<Outstanding>& outstanding() const { return outstanding_; }

private:
    void shutdown() override { outstanding_->end(); }

    const std::shared_ptr<Outstanding> outstanding_ = std::make_shared<Outstanding>();
};

template <class Executor>
std::shared_ptr<Outstanding> outstanding_of(const Executor& executor) {
    namespace asio = boost::asio;
    if constexpr (asio::can_query<Executor, asio::execution::context_t>::value) {
        using Context = decltype(asio::query(executor, asio::execution::context));
        if constexpr (std::is_convertible_v<Context, asio::execution_context&>)
            return asio::use_service<OutstandingService>(
                       static_cast<asio::execution_context&>(asio::query(executor, asio::execution::context)))
                .outstanding();
    }
    return std::make_shared<Outstanding>();
}

/// What is posted to the executor.
template <class Handler, class Value>
class Delivery {
public:
    using allocator_type = boost::asio::associated_allocator_t<Handler>;

    Delivery(Handler handler, Value value) : handler_(std::move(handler)), value_(std::move(value)) {}
    [[nodiscard]] allocator_type get_allocator() const { return boost::asio::get_associated_allocator(handler_); }
    void operator()() {
        // The slot is free for the next operation.
        auto slot = boost::asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected()) slot.clear();
        std::move(handler_)(std::move(value_));
    }

private:
    Handler handler_;
    Value value_;
};

template <class Handler, class Value>
class Operation final : public AnyOperation, public std::enable_shared_from_this<Operation<Handler, Value>> {
public:
    explicit Operation(Handler handler)
        : executor_(boost::asio::get_associated_executor(handler)),
          outstanding_(outstanding_of(*executor_)),
          handler_(std::move(handler)),
          work_(std::in_place, *executor_) {}

    /// Calls `call(cancel, done)`. It is cancelled by the handler's slot, and by `other`.
    template <class Call>
    void start(Call&& call, const std::stop_token& other) {
        if (!outstanding_->add(this->shared_from_this())) return;
        auto slot = boost::asio::get_associated_cancellation_slot(*handler_);
        if (slot.is_connected())
            slot.assign([cancel = cancel_](boost::asio::cancellation_type type) mutable {
                if (type != boost::asio::cancellation_type::none) cancel.request_stop();
            });
        if (other.stop_possible()) on_other_.emplace(other, PassOn{cancel_});
        std::forward<Call>(call)(cancel_.get_token(),
                                 [self = this->shared_from_this()](Value value) { self->complete(std::move(value)); });
    }

    void drop() override {
        cancel_.request_stop();
        let_go();
    }

private:
    struct PassOn {
        std::stop_source to;
        void operator()() { to.request_stop(); }
    };

    void complete(Value value) {
        outstanding_->take_out(*this, [&] {
            boost::asio::post(*executor_, Delivery<Handler, Value>(std::move(*handler_), std::move(value)));
            let_go();
        });
    }
    /// While the context is there: the library may keep this object a little longer than the handler lets it live.
    void let_go() {
        handler_.reset();
        work_.reset();
        executor_.reset();
    }

    std::optional<boost::asio::associated_executor_t<Handler>> executor_;
    const std::shared_ptr<Outstanding> outstanding_;
    std::stop_source cancel_{};
    std::optional<Handler> handler_;
    std::optional<boost::asio::executor_work_guard<boost::asio::associated_executor_t<Handler>>> work_;
    std::optional<std::stop_callback<PassOn>> on_other_{};
};

/// Begins `call(cancel, done)` with whatever handler `token` stands for.
template <class Value, class Token, class Call>
auto initiate(Token&& token, Call call, const std::stop_token& other = {}) {
    return boost::asio::async_initiate<Token, void(Value)>(
        [call = std::move(call), other](auto&& handler) mutable {
            using Handler = std::decay_t<decltype(handler)>;
            std::make_shared<Operation<Handler, Value>>(std::forward<decltype(handler)>(handler))
                ->start(std::move(call), other);
        },
        token);
}

}  // namespace asio_detail

/// `AsyncStore::hold`. What it refers to must outlive each of these operations.
template <class Token>
auto async_hold(AsyncStore& store, LockName name, HoldOptions options, Token&& token) {
    const std::stop_token cancel = options.cancel;
    return asio_detail::initiate<Result<AsyncHold>>(
        std::forward<Token>(token),
        [&store, name = std::move(name), options = std::move(options)](const std::stop_token& stop, auto done) mutable {
            options.cancel = stop;
            store.hold(std::move(name), std::move(options), std::move(done));
        },
        cancel);
}

/// `AsyncStore::acquire`.
template <class Token>
auto async_acquire(AsyncStore& store, Acquire request, std::chrono::milliseconds wait, Token&& token) {
    return asio_detail::initiate<Result<Granted>>(
        std::forward<Token>(token),
        [&store, request = std::move(request), wait](std::stop_token stop, auto done) mutable {
            store.acquire(std::move(request), wait, std::move(stop), std::move(done));
        });
}

/// `AsyncStore::apply_one`, for a renewal, a release, or any other request. One that was sent cannot be taken back: it
/// ends at its deadline and not before.
template <class Token>
auto async_apply_one(AsyncStore& store, Request request, Deadline deadline, Token&& token) {
    return asio_detail::initiate<Reply>(std::forward<Token>(token), [&store, request = std::move(request), deadline](
                                                                        const std::stop_token&, auto done) mutable {
        store.apply_one(std::move(request), deadline, std::move(done));
    });
}
template <class Token>
auto async_renew(AsyncStore& store, Renew request, Deadline deadline, Token&& token) {
    return async_apply_one(store, std::move(request), deadline, std::forward<Token>(token));
}
template <class Token>
auto async_release(AsyncStore& store, Release request, Deadline deadline, Token&& token) {
    return async_apply_one(store, std::move(request), deadline, std::forward<Token>(token));
}

/// `AsyncStore::apply`. As for `async_apply_one`.
template <class Token>
auto async_apply(AsyncStore& store, std::vector<Request> requests, Deadline deadline, Token&& token) {
    return asio_detail::initiate<Result<std::vector<Reply>>>(
        std::forward<Token>(token),
        [&store, requests = std::move(requests), deadline](const std::stop_token&, auto done) mutable {
            store.apply(std::move(requests), deadline, std::move(done));
        });
}

/// `AsyncStore::wait_for_change`.
template <class Token>
auto async_wait_for_change(AsyncStore& store, Watch watch, Deadline deadline, Token&& token) {
    const std::stop_token cancel = watch.stop;
    return asio_detail::initiate<Result<std::optional<HandedOn>>>(
        std::forward<Token>(token),
        [&store, watch = std::move(watch), deadline](std::stop_token stop, auto done) mutable {
            watch.stop = std::move(stop);
            store.wait_for_change(std::move(watch), deadline, std::move(done));
        },
        cancel);
}

/// `AsyncHold::release`. As for `async_apply_one`.
template <class Token>
auto async_release(AsyncHold& hold, Token&& token) {
    return asio_detail::initiate<Result<void>>(
        std::forward<Token>(token), [&hold](const std::stop_token&, auto done) { hold.release(std::move(done)); });
}

/// `AsyncHold::wait_for_loss`: one value, the `Error` that says why.
template <class Token>
auto async_wait_for_loss(const AsyncHold& hold, Token&& token) {
    return asio_detail::initiate<Error>(std::forward<Token>(token), [&hold](std::stop_token stop, auto done) {
        hold.wait_for_loss(std::move(stop), std::move(done));
    });
}

}  // namespace holdfast
