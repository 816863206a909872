#pragma once

#include "client/bounded_calls.hpp"
#include "client/callbacks.hpp"
#include "client/loss.hpp"
#include "client/waiter.hpp"
#include "holdfast/hold.hpp"
#include "kernel/renewal_plan.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace holdfast::client {

/// A lease that this process keeps: its last known state, how long it can be trusted, and its observer.
///
/// It has no thread and calls no store: the `Renewer` renews it, and reports the result through the functions whose
/// names begin with `on_`. They change what is known at once and run no code of the user; that is queued, and each of
/// them returns the queue that must be run soon, or null. The stop callbacks of `lost()` have a queue of their own, so
/// that an observer that blocks does not delay them.
class KeptLease {
public:
    KeptLease(Store& store, const HoldOptions& options, Granted granted);
    KeptLease(const KeptLease&) = delete;
    KeptLease& operator=(const KeptLease&) = delete;

    // For the holder, from any thread.
    [[nodiscard]] const LockName& name() const { return name_; }
    [[nodiscard]] const Credentials& credentials() const { return as_; }
    [[nodiscard]] Lease lease() const;
    [[nodiscard]] Boottime deadline() const { return plan().deadline(); }
    [[nodiscard]] std::stop_token lost() const { return lost_.get_token(); }
    [[nodiscard]] std::optional<Error> loss() const;
    [[nodiscard]] Error reason_of_expiry() const;
    /// Calls the observer here. Only while nobody renews.
    void tell(const HoldEvent& event) const;
    /// Only while nobody renews.
    [[nodiscard]] LockStatus status() const;

    // For the renewer.
    [[nodiscard]] kernel::RenewalPlan plan() const;
    [[nodiscard]] Renew renewal() const { return {name_, as_, options_.ttl, Revive::no}; }
    /// Whether it is lost: a question that changes nothing, also where it is not to be renewed.
    [[nodiscard]] Check check() const { return {name_, lease().token, as_.lock_id, {}}; }
    /// False when another renewal would not extend the lease: it is switched off, or max_until is reached.
    [[nodiscard]] bool can_be_renewed() const;

    using CallbacksToRun = std::shared_ptr<CallbackQueue>;
    /// `sent_at` is before the request left: the new deadline counts from there.
    [[nodiscard]] CallbacksToRun on_renewed(Outcome outcome, Boottime sent_at);
    /// A renewal failed, or its outcome is unknown. The deadline does not move.
    [[nodiscard]] CallbacksToRun on_failure(const Error& error);
    /// The deadline has come.
    [[nodiscard]] CallbacksToRun on_deadline();
    /// The store reports that the lease is over or that another client has the lock. The reason is read from the
    /// history, with `calls`, after the loss was announced.
    [[nodiscard]] CallbacksToRun on_refusal(const Error& cause, BoundedCalls& calls);
    /// Runs here what is queued, after waiting for what runs. Only after the renewer has let go of this lease.
    void finish_callbacks();
    /// False if that would do nothing.
    [[nodiscard]] bool has_callbacks() const { return loss_callbacks_->is_busy() || observer_callbacks_->is_busy(); }

private:
    void set_loss(const Error& cause);
    [[nodiscard]] std::optional<Explanation> explain(const Error& cause, BoundedCalls& calls) const;
    void tell_loss(HoldEventKind kind, const Error& cause);

    Store& store_;
    const HoldOptions options_;
    const LockName name_;
    const Credentials as_;

    mutable std::mutex mutex_;  ///< Guards the four below; only the `on_` functions write them.
    LockStatus status_;
    kernel::RenewalPlan plan_;
    std::optional<Error> last_failure_;  ///< Of a renewal, since the last that succeeded.
    std::optional<Error> loss_;

    std::stop_source lost_;
    /// Shared with the threads that run them, which may look after this lease has gone.
    const std::shared_ptr<CallbackQueue> loss_callbacks_ = std::make_shared<CallbackQueue>();
    const std::shared_ptr<CallbackQueue> observer_callbacks_ = std::make_shared<CallbackQueue>();
};

}  // namespace holdfast::client
