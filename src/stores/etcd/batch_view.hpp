#pragma once

#include "base/frame.hpp"
#include "stores/batch/batch.hpp"
#include "stores/etcd/keys.hpp"
#include "stores/etcd/messages.hpp"
#include "stores/etcd/node_clock.hpp"

#include <functional>
#include <map>

namespace holdfast::stores::etcd {

/// What a batch reads: planned as operations of one transaction, and taken from its answer.
class BatchView {
public:
    BatchView(const Keys& keys, const std::vector<Wanted>& wanted) : keys_(keys), wanted_(wanted) {}

    /// Calls `add` for everything to be read, in the order in which `take` expects the answers.
    void plan(const std::function<void(const Get&)>& add) const;
    /// The answers to `plan`; there may be more behind them.
    [[nodiscard]] Result<void> take(TxnAnswer answer);

    /// For a single lock: as if these had been read, and nobody in its queue.
    void assume(KeyValue meta, KeyValue record);
    [[nodiscard]] bool is_assumed() const { return is_assumed_; }
    /// Nobody waits for the lock.
    [[nodiscard]] bool is_queue_empty(const LockName& name) const { return seen_.at(name).waiting == 0; }

    /// What the first answer shows to be needed, too: tickets deep in a queue, and whether a lock without
    /// a record has a past. Mostly nothing.
    [[nodiscard]] std::vector<Get> missing() const;
    void take_missing(std::vector<Found> found);

    [[nodiscard]] const std::optional<KeyValue>& meta() const { return meta_; }
    [[nodiscard]] bool store_was_there() const { return store_was_there_; }
    /// As of which everything was read.
    [[nodiscard]] Revision revision() const { return revision_; }
    /// Tells the batch what was found, as it counts at `moment`.
    void tell(Batch& batch, const Moment& moment, std::chrono::milliseconds tolerance);

    [[nodiscard]] Result<LockView> view_of(const Wanted& wanted, const Moment& moment,
                                           std::chrono::milliseconds tolerance);

    /// For comparisons: 0 for what was not there.
    [[nodiscard]] Revision record_changed_in(const LockName& name) const;
    [[nodiscard]] Revision ticket_changed_in(const LockName& name, std::uint64_t number) const;
    /// The number of the ticket that `tell` found for a waiter.
    [[nodiscard]] std::optional<std::uint64_t> place_of(const LockName& name, const LockId& waiter) const;
    [[nodiscard]] const std::vector<Wanted>& wanted() const { return wanted_; }
    [[nodiscard]] std::size_t planned() const;

private:
    struct Seen {
        std::optional<KeyValue> record{};
        std::map<std::string, KeyValue> tickets{};  ///< By key.
        std::vector<std::string> deep{};            ///< Keys of own tickets that are not among them.
        std::map<LockId, std::uint64_t> places{};
        std::uint64_t waiting = 0;
        bool has_past = false;
    };

    const Keys& keys_;
    const std::vector<Wanted>& wanted_;
    Revision revision_ = 0;
    bool is_assumed_ = false;
    bool store_was_there_ = false;
    std::optional<KeyValue> meta_{};
    std::map<LockName, Seen> seen_{};
};

/// Stored bytes as the decoders want them.
[[nodiscard]] base::ByteView bytes_of(const std::string& value);

}  // namespace holdfast::stores::etcd
