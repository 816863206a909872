#pragma once

#include "holdfast/store.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <optional>

namespace holdfast::tests {

/// A real store behind a line that a test can cut, and make forget its answers.
class FaultyStore final : public Store {
public:
    explicit FaultyStore(Store& inner) : Store(inner.clock()), inner_(&inner) {}

    /// From now on no call gets through: `store_unavailable`.
    void cut() { cut_ = true; }
    void heal() { cut_ = false; }
    /// From now on every call gets through, and each of its requests is refused with this.
    void refuse_with(const Error& error) {
        const std::scoped_lock lock(mutex_);
        refusal_ = error;
    }
    /// From now on every call with a request for `name` fails as a whole: `store_unavailable`.
    void fail_calls_with(const LockName& name) {
        const std::scoped_lock lock(mutex_);
        failing_ = name;
    }
    /// The next so many calls never come back, whatever their deadline, until `let_go`. They are not carried out.
    void hang(int count) { hanging_ = count; }
    void let_go() {
        if (!let_go_.exchange(true)) may_go_.count_down();
    }
    /// From now on it is another store, as if somebody had emptied this one.
    void replace_by(Store& other) { inner_ = &other; }
    /// From now on this is called before the history is read.
    void before_history(std::function<void()> hook) { before_history_ = std::move(hook); }
    /// The next so many calls are carried out, and their answers lost: `outcome_unknown`.
    void lose_answers(int count) { lost_answers_ = count; }
    /// From now on this is called when a call was carried out and before its answer arrives.
    void before_answers(std::function<void()> hook) { before_answers_ = std::move(hook); }
    /// From now on this is called when a call has left and is not carried out yet.
    void before_calls(std::function<void()> hook) { before_calls_ = std::move(hook); }
    /// From now on it is reached, and what it held is gone.
    void lose_everything() { is_lost_ = true; }
    /// From now on every watch ends at once, and every call goes through as before.
    void end_watches_with(const Result<std::optional<HandedOn>>& result) {
        const std::scoped_lock lock(mutex_);
        end_of_watches_ = result;
    }
    void let_watches_be() {
        const std::scoped_lock lock(mutex_);
        end_of_watches_.reset();
    }
    /// How often somebody has subscribed.
    [[nodiscard]] int watches() const { return watches_; }
    /// How often somebody asked whether a lease is still there.
    [[nodiscard]] int checks() const { return checks_; }
    /// From now on nobody is woken: this is called instead of every wait.
    void instead_of_waits(std::function<void()> hook) { instead_of_waits_ = std::move(hook); }
    /// From now on this is called before every look at a lock and before every look at a log.
    void before_looks(std::function<void()> hook) { before_looks_ = std::move(hook); }
    /// From now on the last reply of every call is a refusal with this code, whatever was done.
    void refuse_last(Errc code) { refused_with_ = code; }
    [[nodiscard]] int applied() const { return applied_; }
    /// How often somebody wanted a copy of the session.
    [[nodiscard]] int sessions_asked_for() const { return sessions_asked_for_; }
    std::optional<int> duplicate_session() const override {
        ++sessions_asked_for_;
        return std::nullopt;
    }
    /// How often somebody asked for a lock.
    [[nodiscard]] int acquires() const { return acquires_; }
    /// The latest moment until which somebody has wanted to wait for a change.
    [[nodiscard]] Boottime longest_wait() const { return longest_wait_; }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        ++applied_;
        acquires_ += static_cast<int>(
            std::ranges::count_if(requests, [](const Request& each) { return std::holds_alternative<Acquire>(each); }));
        checks_ += static_cast<int>(
            std::ranges::count_if(requests, [](const Request& each) { return std::holds_alternative<Check>(each); }));
        if (cut_) return unreachable();
        if (is_lost_) return lost();
        if (before_calls_) before_calls_();
        if (hanging_ > 0) {
            --hanging_;
            may_go_.wait();
            return unreachable();
        }
        if (const std::scoped_lock lock(mutex_);
            failing_ && std::ranges::any_of(requests, [&](const Request& each) { return name_of(each) == *failing_; }))
            return unreachable();
        if (const std::scoped_lock lock(mutex_); refusal_)
            return std::vector<Reply>(requests.size(), std::unexpected(*refusal_));
        auto replies = inner_.load()->apply(requests, deadline);
        if (before_answers_) before_answers_();
        if (replies && refused_with_) replies->back() = fail(*refused_with_, "refused by the test");
        if (lost_answers_ > 0) {
            --lost_answers_;
            return fail(Errc::outcome_unknown, "the answer was lost");
        }
        return replies;
    }
    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        if (cut_) return unreachable();
        if (before_looks_) before_looks_();
        return inner_.load()->inspect(name, deadline);
    }
    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        if (cut_) return unreachable();
        return inner_.load()->list(query, deadline);
    }
    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        if (cut_) return unreachable();
        if (before_history_) before_history_();
        if (before_looks_) before_looks_();
        return inner_.load()->history(query, deadline);
    }
    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) override {
        if (cut_) return unreachable();
        return inner_.load()->events(after, limit, deadline);
    }
    Result<EventCursor> end_of_events(Deadline deadline) override {
        if (cut_) return unreachable();
        return inner_.load()->end_of_events(deadline);
    }
    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        if (cut_) return unreachable();
        longest_wait_ = std::max(longest_wait_.load(), deadline.at);
        if (!instead_of_waits_) return inner_.load()->wait_for_change(watch, deadline);
        instead_of_waits_();
        return std::nullopt;
    }
    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        ++watches_;
        if (cut_) return unreachable();
        if (is_lost_) end_watches_with(lost());
        {
            std::unique_lock lock(mutex_);
            if (const auto end = end_of_watches_) {
                lock.unlock();
                fired(*end);
                return std::make_unique<Subscription>();
            }
        }
        return inner_.load()->subscribe(watch, std::move(fired));
    }
    StoreProperties properties() const override { return inner_.load()->properties(); }
    StoreInfo info() const override { return inner_.load()->info(); }
    std::optional<StoreId> store_id() const override { return inner_.load()->store_id(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_.load()->examine(deadline); }

private:
    static std::unexpected<Error> lost() {
        return std::unexpected(
            Error{.code = Errc::store_unavailable, .message = "the schema was removed", .store_is_lost = true});
    }
    static std::unexpected<Error> unreachable() { return fail(Errc::store_unavailable, "the line is cut"); }

    mutable std::atomic<int> sessions_asked_for_ = 0;
    std::atomic<Store*> inner_;
    std::atomic<bool> cut_ = false;
    std::atomic<bool> is_lost_ = false;
    std::atomic<int> watches_ = 0;
    std::atomic<int> checks_ = 0;
    std::atomic<int> lost_answers_ = 0;
    std::atomic<int> applied_ = 0;
    std::atomic<int> acquires_ = 0;
    std::atomic<Boottime> longest_wait_ = Boottime::min();
    std::atomic<int> hanging_ = 0;
    std::atomic<bool> let_go_ = false;
    std::latch may_go_{1};
    std::mutex mutex_;
    std::optional<Error> refusal_;                                   ///< Guarded by mutex_.
    std::optional<LockName> failing_;                                ///< Guarded by mutex_.
    std::optional<Result<std::optional<HandedOn>>> end_of_watches_;  ///< Guarded by mutex_.
    std::function<void()> before_answers_;
    std::function<void()> before_calls_;
    std::function<void()> before_history_;
    std::function<void()> instead_of_waits_;
    std::function<void()> before_looks_;
    std::optional<Errc> refused_with_;
};

}  // namespace holdfast::tests
