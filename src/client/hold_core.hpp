#pragma once

#include "client/hold_terms.hpp"
#include "client/kept_lease.hpp"
#include "client/lock_order.hpp"
#include "client/renewer.hpp"
#include "client/waiter.hpp"
#include "holdfast/hold.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace holdfast {

/// One lease, from its grant until it is given back. Its options must name a clock.
class Hold::Core {
public:
    /// What happens to the lease at the end. The owner of a joined lease is another process, and releases it itself.
    enum class AtEnd { release, leave };

    Core(Store& store, const HoldOptions& options, client::Granted granted,
         client::LockOrder::Registration registration, AtEnd at_end);
    /// Releases the lease unless that was done.
    ~Core();

    /// Tells the observer of the grant, and renews if `renew_from` says so.
    Result<void> start();
    Result<void> start_renewing();
    Result<void> release();
    void abandon();

    /// `release` in steps, for a caller that may not wait and sends the request itself: stop renewing, until that is
    /// true; then begin, which gives the request, if there is one to send, or why the lease cannot be given back, and
    /// waits only if `has_callbacks`; then finish, with the answer; and always leave.
    [[nodiscard]] bool try_stop_renewing();
    [[nodiscard]] bool has_callbacks() const { return lease_.has_callbacks(); }
    [[nodiscard]] Result<std::optional<Release>> begin_release();
    Result<void> finish_release(const Reply& reply);
    void leave_renewer();
    /// How long the store may take to answer the request. Without an answer the lease runs out by itself.
    static constexpr std::chrono::milliseconds release_timeout{2000};

    [[nodiscard]] const client::KeptLease& lease() const { return lease_; }
    [[nodiscard]] Store& store() const { return store_; }
    [[nodiscard]] const std::optional<StoreId>& store_id() const { return store_id_; }
    [[nodiscard]] const std::optional<StolenFrom>& stolen_from() const { return stolen_from_; }
    [[nodiscard]] bool is_stuck() const;

    /// For the order of locks: the `Hold` lies at `place` now.
    void place_in_order(const void* place) { registration_.move_to(place); }
    /// For the order of locks: this thread works with it.
    void take_into_use() { registration_.take_into_use(); }

private:
    void stop_renewing();
    [[nodiscard]] Reply ask_to_release(const Release& request);
    [[nodiscard]] Reply ask_once_to_release(const Release& request);

    Store& store_;
    const std::optional<StoreId> store_id_;
    const HoldOptions options_;
    const std::optional<StolenFrom> stolen_from_;
    const AtEnd at_end_;
    client::LockOrder::Registration registration_;
    client::KeptLease lease_;
    struct Withdraw {
        client::LockOrder::Registration& registration;
        void operator()() const { registration.withdraw(); }
    };
    /// What is lost is not held any more.
    std::stop_callback<Withdraw> on_lost_;
    bool is_done_ = false;      ///< Used by the owner alone, as the next.
    bool has_stopped_ = false;  ///< It is renewed no more.

    mutable std::mutex mutex_;  ///< Guards `renewer_`. Only the owner changes it.
    /// Shared with the other holds on this store. Absent while nobody renews; kept after that while a call hangs.
    std::shared_ptr<client::Renewer> renewer_;
};

}  // namespace holdfast
