#pragma once

#include "stores/etcd/batch_view.hpp"

namespace holdfast::stores::etcd {

/// What a batch changes, as one transaction: written if nothing that was read has changed since, and read again
/// otherwise.
class Writing {
public:
    /// Of a store that is not known to have had a lock, `was_used` is false: then the first lock is noted with it.
    Writing(const Keys& keys, const BatchView& view, const std::vector<Change>& changes, const Moment& moment,
            bool was_used);

    [[nodiscard]] std::string message() const { return txn_.message(); }

    /// Whether it reads if it does not write.
    [[nodiscard]] bool reads_otherwise() const { return reads_otherwise_; }

    /// Whether the queue of its only lock is the last that it reads if it writes.
    [[nodiscard]] bool reads_queue() const { return reads_queue_; }

    /// Whether it notes that the store has had a lock.
    [[nodiscard]] bool marks_used() const { return marks_used_; }

    /// The records in it.
    [[nodiscard]] const std::map<LockName, std::string>& records() const { return records_; }

    enum class Earlier {
        not_done,
        done,
        unknown,  ///< What would show it was pruned meanwhile.
    };
    /// What an answer to a transaction that did not succeed shows of an earlier copy of it. A request that was sent
    /// and not answered is sent again, so that may have been carried out; and it is then the only time, because every
    /// copy compares the same revisions. Means nothing if there was no earlier copy: the same request of somebody else
    /// leaves the same behind.
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
    KeyValue evidence_{};  ///< One key with what this writes to it. No key: nothing but removals.
    Get evidence_get_{};
};

}  // namespace holdfast::stores::etcd
