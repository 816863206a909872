#pragma once

#include "stores/etcd/batch_view.hpp"
#include "stores/etcd/cluster.hpp"

#include <atomic>
#include <mutex>

namespace holdfast::stores::etcd {

/// Format 2 can have events of kinds that older programs cannot read. Format 1 is otherwise the same.
inline constexpr int our_format = 2;

/// One store in one cluster: transactions on it, its format and its id.
class Remote {
public:
    Remote(Address address, const Clock& clock)
        : clock_(clock), keys_(address.prefix), node_clock_(clock, address.margin), cluster_(std::move(address)) {}

    struct Answer {
        TxnAnswer txn{};
        bool maybe_repeated = false;  ///< See `Cluster::Answer`.
    };

    /// Who guarantees that a read is current: the node that answers, or the cluster's log. See `Txn::order_by_log`.
    /// `may_be_stale`: the node that answers need not be in a majority, if no other answers. For reads that only inform
    /// people.
    enum class Order { by_one_node, by_log, may_be_stale };

    /// A transaction that only reads: `store_unavailable` if nobody answers it.
    [[nodiscard]] Result<Answer> read(const Txn& txn, base::CallBudget& budget, Order order = Order::by_one_node);
    /// A transaction that compares what was read before, so that it may be sent again; see `BatchTxn`.
    [[nodiscard]] Result<Answer> write(const std::string& txn, base::CallBudget& budget);

    /// The time, computed from a recent reading of a node's clock if there is one.
    [[nodiscard]] Result<Moment> moment(base::CallBudget& budget);
    /// The time, from a new reading of a node's clock. For cases where a lease or ticket may have ended.
    [[nodiscard]] Result<Moment> look_at_clock(base::CallBudget& budget);
    /// The lock in `view` as it is at `moment`, which is replaced by a new reading of the clock if a lease or ticket
    /// may have ended.
    [[nodiscard]] Result<LockView> judged(BatchView& view, const Wanted& lock, Moment& moment,
                                          base::CallBudget& budget);

    /// Reads everything that `view` plans.
    [[nodiscard]] Result<Moment> look(BatchView& view, base::CallBudget& budget, Order order = Order::by_one_node);
    /// Reads what is still missing after the first answer; see `BatchView::missing`.
    [[nodiscard]] Result<void> complete(BatchView& view, base::CallBudget& budget, Order order = Order::by_one_node);

    /// Whether the store is there. Refused with `format_unsupported` for a newer format, and with `store_unavailable`
    /// if the store existed before (`was_there`) and is gone: its locks may be held, and an empty store would give them
    /// to another client.
    [[nodiscard]] Result<bool> exists(const std::optional<KeyValue>& meta, bool was_there);
    [[nodiscard]] Result<bool> exists(const BatchView& view) { return exists(view.meta(), view.store_was_there()); }
    /// Creates the store, unless another client was faster.
    [[nodiscard]] Result<void> create(base::CallBudget& budget);
    /// Upgrades the store to our format, unless another client was faster. Look again after this.
    [[nodiscard]] Result<void> upgrade(base::CallBudget& budget);

    [[nodiscard]] std::optional<StoreId> store_id() const;
    /// The format of the store that was seen last.
    [[nodiscard]] int format() const;
    [[nodiscard]] bool is_old() const { return format() < our_format; }
    /// Whether the store was ever seen to have had a lock.
    [[nodiscard]] bool was_used() const { return was_used_; }
    void now_used() { was_used_ = true; }
    /// What was read last with `Order::may_be_stale` came from a node without a majority.
    [[nodiscard]] bool may_be_stale() const { return may_be_stale_; }
    /// The meta key, as it was seen last.
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
    std::atomic<bool> may_be_stale_ = false;

    mutable std::mutex mutex_;
    // All are guarded by mutex_, and are of the store that was seen last.
    std::optional<StoreId> store_id_{};
    int format_ = our_format;
    std::optional<KeyValue> meta_{};
};

}  // namespace holdfast::stores::etcd
