#pragma once

#include "base/attempts.hpp"
#include "base/call_budget.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::stores {

/// The connections to one server: one for each call that is under way, kept for the next. No call waits for another.
/// May be used from any thread; a connection is for one thread at a time.
///
/// A connection has `is_usable()`: neither broken nor left in the middle of an answer; and `is_alive()`: the server has
/// not closed it since it was used last, as far as can be seen without waiting.
template <class Connection>
class Pool {
public:
    using Open = std::function<Result<std::unique_ptr<Connection>>(const base::CallBudget&)>;

    /// A connection while a call uses it. Goes back to the pool, or is closed if it broke.
    class Borrowed {
    public:
        Borrowed(Pool& pool, std::unique_ptr<Connection> connection, bool was_idle)
            : pool_(&pool), connection_(std::move(connection)), was_idle_(was_idle) {}
        Borrowed(Borrowed&&) = default;
        Borrowed& operator=(Borrowed&&) = delete;
        ~Borrowed() {
            if (connection_) pool_->give_back(std::move(connection_));
        }

        [[nodiscard]] Connection* operator->() const { return connection_.get(); }
        [[nodiscard]] Connection& operator*() const { return *connection_; }
        /// An idle connection may have died since its last use. A fresh one has just had an answer.
        [[nodiscard]] bool was_idle() const { return was_idle_; }

    private:
        Pool* pool_;
        std::unique_ptr<Connection> connection_;
        bool was_idle_;
    };

    explicit Pool(Open open) : open_(std::move(open)) {}

    /// One that works as far as can be seen.
    [[nodiscard]] Result<Borrowed> take(const base::CallBudget& budget) {
        // A server that restarted has closed the idle ones. Sending into such a connection would leave it unknown
        // whether a change was made.
        while (auto idle = take_idle())
            if (idle->is_alive()) return Borrowed(*this, std::move(idle), true);
        return open(budget);
    }

    /// Always a new one. For a call after a connection broke: the idle ones are closed, since they are probably broken,
    /// too.
    [[nodiscard]] Result<Borrowed> take_fresh(const base::CallBudget& budget) {
        while (take_idle()) {
        }
        return open(budget);
    }

private:
    /// More are closed when they are given back: each costs the server memory.
    static constexpr std::size_t most_idle = 32;

    [[nodiscard]] std::unique_ptr<Connection> take_idle() {
        const std::scoped_lock lock(mutex_);
        if (idle_.empty()) return nullptr;
        auto connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
    }

    [[nodiscard]] Result<Borrowed> open(const base::CallBudget& budget) {
        if (auto may = attempts_.wait(budget.left()); !may) return std::unexpected(may.error());
        auto opened = open_(budget);
        if (!opened) {
            attempts_.failed(opened.error());
            return std::unexpected(std::move(opened.error()));
        }
        attempts_.succeeded();
        return Borrowed(*this, std::move(*opened), false);
    }

    void give_back(std::unique_ptr<Connection> connection) {
        if (!connection->is_usable()) return;
        const std::scoped_lock lock(mutex_);
        if (idle_.size() < most_idle) idle_.push_back(std::move(connection));
    }

    const Open open_;
    base::Attempts attempts_{};
    std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
