#pragma once

#include "stores/etcd/batch_view.hpp"
#include "stores/etcd/cluster.hpp"

#include <atomic>
#include <mutex>

namespace holdfast::stores::etcd {

/// Transactions on one store, and what makes it one: its format and its id.
class Session {
public:
    Session(Address address, const Clock& clock)
        : clock_(clock), keys_(address.prefix), node_clock_(clock, address.margin), cluster_(std::move(address)) {}

    struct Answer {
        TxnAnswer txn{};
        bool maybe_repeated = false;  ///< See `Cluster::Answer`.
    };

    /// Who vouches for what is read; see `Txn::order_by_log`.
    enum class Order { by_one_node, by_log };

    /// A transaction that only reads: `store_unavailable` if nobody answers it.
    [[nodiscard]] Result<Answer> read(const Txn& txn, CallBudget& budget);
    /// One that compares what it read before, so that it may be sent again: see `Writing`.
    [[nodiscard]] Result<Answer> write(const std::string& txn, CallBudget& budget);

    /// What time it is, going by what was heard of a node's clock in the last seconds.
    [[nodiscard]] Result<Moment> moment(CallBudget& budget);
    /// What time it is, going by a look at a node's clock: where something may have ended.
    [[nodiscard]] Result<Moment> look_at_clock(CallBudget& budget);
    /// What `view` found of a lock, as it counts at `moment`, which may become another for that.
    [[nodiscard]] Result<LockView> judged(BatchView& view, const Wanted& lock, Moment& moment, CallBudget& budget);

    /// Reads what `view` plans, all of it.
    [[nodiscard]] Result<Moment> look(BatchView& view, CallBudget& budget, Order order = Order::by_one_node);
    /// What an answer that `view` has taken shows to be needed, too.
    [[nodiscard]] Result<void> complete(BatchView& view, CallBudget& budget);

    /// Whether the store is there. Refused with `format_unsupported`; and with `store_unavailable` if it was there
    /// before it was asked for: its locks may be held, and an empty store would give them to somebody else.
    [[nodiscard]] Result<bool> exists(const std::optional<KeyValue>& meta, bool was_there);
    [[nodiscard]] Result<bool> exists(const BatchView& view) { return exists(view.meta(), view.store_was_there()); }
    /// Makes the store, unless somebody else was faster.
    [[nodiscard]] Result<void> create(CallBudget& budget);

    [[nodiscard]] std::optional<StoreId> store_id() const;
    /// Whether the store was ever seen to have had a lock.
    [[nodiscard]] bool was_used() const { return was_used_; }
    void now_used() { was_used_ = true; }
    /// The key that says what the store is, as it was seen last.
    [[nodiscard]] std::optional<KeyValue> meta() const;
    [[nodiscard]] const Keys& keys() const { return keys_; }
    [[nodiscard]] const NodeClock& node_clock() const { return node_clock_; }
    [[nodiscard]] Cluster& cluster() { return cluster_; }
    [[nodiscard]] const Cluster& cluster() const { return cluster_; }

private:
    const Clock& clock_;
    const Keys keys_;
    NodeClock node_clock_;
    Cluster cluster_;
    std::atomic<bool> was_used_ = false;

    mutable std::mutex mutex_;
    // Both are guarded by mutex_, and are of the store that was seen last.
    std::optional<StoreId> store_id_{};
    std::optional<KeyValue> meta_{};
};

}  // namespace holdfast::stores::etcd
