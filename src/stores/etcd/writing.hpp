#pragma once

#include "stores/etcd/batch_view.hpp"

namespace holdfast::stores::etcd {

/// What a batch changes, as one transaction: written if nothing that was read has changed since, and read again
/// otherwise.
class Writing {
public:
    Writing(const Keys& keys, const BatchView& view, const std::vector<Change>& changes, const Moment& moment);

    [[nodiscard]] std::string text() const { return txn_.text(); }

    /// Whether an answer to a transaction that did not succeed shows that an earlier copy of it did. A request
    /// that was sent and not answered is sent again, so that can be; and it is then the only time, because every
    /// copy compares the same revisions.
    [[nodiscard]] bool was_done_before(const BatchView& view, const TxnAnswer& answer) const;

private:
    void write(const Change& change, const Moment& moment);
    void sweep(const BatchView& view, const std::vector<Change>& changes, const Moment& moment);
    void put(const BatchView& view, const LockName& name, const kernel::Ticket& ticket, const Moment& moment);
    void drop(const BatchView& view, const Change& change, const kernel::Ticket& ticket);

    const Keys& keys_;
    Txn txn_{};
    KeyValue evidence_{};  ///< One key with what this writes to it. No key: nothing but removals.
};

}  // namespace holdfast::stores::etcd
