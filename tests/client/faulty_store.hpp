#pragma once

#include "holdfast/store.hpp"

#include <atomic>
#include <functional>
#include <optional>

namespace holdfast::tests {

/// A real store behind a line that a test can cut, and make forget its answers.
class FaultyStore final : public Store {
public:
    explicit FaultyStore(Store& inner) : inner_(inner) {}

    /// From now on no call gets through: `store_unavailable`.
    void cut() { cut_ = true; }
    void heal() { cut_ = false; }
    /// The next so many calls are carried out, and their answers lost: `outcome_unknown`.
    void lose_answers(int count) { lost_answers_ = count; }
    /// From now on this is called when a call was carried out and before its answer arrives.
    void before_answers(std::function<void()> hook) { before_answers_ = std::move(hook); }
    /// From now on this is called when a call has left and is not carried out yet.
    void before_calls(std::function<void()> hook) { before_calls_ = std::move(hook); }
    /// From now on nobody is woken: this is called instead of every wait.
    void instead_of_waits(std::function<void()> hook) { instead_of_waits_ = std::move(hook); }
    [[nodiscard]] int applied() const { return applied_; }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        ++applied_;
        if (cut_) return unreachable();
        if (before_calls_) before_calls_();
        auto replies = inner_.apply(requests, deadline);
        if (before_answers_) before_answers_();
        if (lost_answers_ > 0) {
            --lost_answers_;
            return fail(Errc::outcome_unknown, "the answer was lost");
        }
        return replies;
    }
    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        if (cut_) return unreachable();
        return inner_.inspect(name, deadline);
    }
    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        if (cut_) return unreachable();
        return inner_.list(query, deadline);
    }
    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        if (cut_) return unreachable();
        return inner_.history(query, deadline);
    }
    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        if (cut_) return unreachable();
        if (!instead_of_waits_) return inner_.wait_for_change(watch, deadline);
        instead_of_waits_();
        return std::nullopt;
    }
    StoreInfo info() const override { return inner_.info(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_.examine(deadline); }

private:
    static std::unexpected<Error> unreachable() { return fail(Errc::store_unavailable, "the line is cut"); }

    Store& inner_;
    std::atomic<bool> cut_ = false;
    std::atomic<int> lost_answers_ = 0;
    std::atomic<int> applied_ = 0;
    std::function<void()> before_answers_;
    std::function<void()> before_calls_;
    std::function<void()> instead_of_waits_;
};

}  // namespace holdfast::tests
