#pragma once

#include "stores/etcd/batch_view.hpp"

namespace holdfast::stores::etcd {

/// The changes of a batch as one transaction: it writes if nothing that was read has changed since, and reads again
/// otherwise.
class BatchTxn {
public:
    /// `was_used` is false for a store that is not known to have had a lock: then the first lock also writes the mark
    /// of use.
    BatchTxn(const Keys& keys, const BatchView& view, const std::vector<Change>& changes, const Moment& moment,
             bool was_used);

    [[nodiscard]] std::string message() const { return txn_.message(); }

    /// Whether the failure branch reads the state.
    [[nodiscard]] bool reads_otherwise() const { return reads_otherwise_; }

    /// Whether the last operation of the success branch reads the queue of its only lock.
    [[nodiscard]] bool reads_queue() const { return reads_queue_; }

    /// Whether it writes the mark of use.
    [[nodiscard]] bool marks_used() const { return marks_used_; }

    /// The records that it writes.
    [[nodiscard]] const std::map<LockName, std::string>& records() const { return records_; }

    enum class Earlier {
        not_done,
        done,
        unknown,  ///< The evidence was pruned meanwhile.
    };
    /// Whether an earlier copy of this transaction was carried out, from the answer to a later copy that did not
    /// succeed. A request without an answer is sent again, and at most one copy can succeed, because all compare the
    /// same revisions. Only to be called if there was an earlier copy: the same request of another client would leave
    /// the same evidence.
    [[nodiscard]] Earlier earlier_copy(const BatchView& view, const TxnAnswer& answer) const;

private:
    void compare_predictions(const BatchView& view);
    void write(const Change& change, const Moment& moment);
    void sweep(const BatchView& view, const std::vector<Change>& changes, const Moment& moment);
    void put(const BatchView& view, const LockName& name, const kernel::Ticket& ticket, const Moment& moment);
    void drop(const BatchView& view, const Change& change, const kernel::Ticket& ticket);

    const Keys& keys_;
    Txn txn_{};
    bool reads_otherwise_ = true;
    bool reads_queue_ = false;
    bool marks_used_ = false;
    std::map<LockName, std::string> records_{};
    KeyValue
        evidence_{};  ///< One key, and the value that this transaction gives it. No key if there are only removals.
    Get evidence_get_{};
};

}  // namespace holdfast::stores::etcd
