#pragma once

#include "base/frame.hpp"
#include "stores/common/batch.hpp"
#include "stores/common/damage.hpp"
#include "stores/etcd/keys.hpp"
#include "stores/etcd/node_clock.hpp"
#include "stores/etcd/wire/messages.hpp"

#include <functional>
#include <map>

namespace holdfast::stores::etcd {

/// The predicted state of one lock; see `Optimistic`.
struct Assumed {
    std::optional<KeyValue> record{};  ///< Absent: it was never used.
    bool is_quiet = false;  ///< True if the prediction says that nobody waits. False: the queue does not matter.
    std::optional<KeyValue> place{};  ///< The first in its queue.
};

/// The state that a batch reads: planned as operations of one transaction, and taken from its answer.
class BatchView {
public:
    BatchView(const Keys& keys, const std::vector<Wanted>& wanted) : keys_(keys), wanted_(wanted) {}

    /// The beginning of its queue.
    [[nodiscard]] Get queue_of(const Wanted& lock) const;
    /// Calls `add` for everything to be read, in the order in which `take` expects the answers.
    void plan(const std::function<void(const Get&)>& add) const;
    /// Takes the answers to `plan`; more answers may follow them.
    [[nodiscard]] Result<void> take(TxnAnswer answer);

    /// Fills the view from predictions, in the order of `wanted`.
    void assume(KeyValue meta, std::vector<Assumed> locks);
    [[nodiscard]] bool is_assumed() const { return is_assumed_; }
    /// The keys that the prediction assumes absent: the whole queue, or the tickets before the known one.
    [[nodiscard]] std::optional<KeyRange> assumed_absent(const Wanted& lock) const;
    /// Plans reading the queues that the prediction left open, together with the change.
    void plan_queues(const std::function<void(const Get&)>& add) const;
    /// Takes the answers to `plan_queues`, which are the last of an answer.
    void take_queues(const TxnAnswer& answer, const Moment& moment, std::chrono::milliseconds tolerance);
    /// The number of waiters, as far as they were read.
    [[nodiscard]] std::uint64_t waiting(const LockName& name) const { return seen_.at(name).waiting; }
    /// The lock was never used.
    [[nodiscard]] bool is_new(const LockName& name) const { return !seen_.at(name).record && !seen_.at(name).has_past; }

    /// Further reads that the first answer shows to be necessary: tickets deep in a queue, and whether a lock without a
    /// record has events. Usually none.
    [[nodiscard]] std::vector<Get> missing() const;
    void take_missing(std::vector<Found> found);

    [[nodiscard]] const std::optional<KeyValue>& meta() const { return meta_; }
    [[nodiscard]] bool store_was_there() const { return store_was_there_; }
    /// The revision at which everything was read.
    [[nodiscard]] Revision revision() const { return revision_; }
    /// Passes the locks to the batch, as they are at `moment`.
    void tell(Batch& batch, const Moment& moment, std::chrono::milliseconds tolerance);

    [[nodiscard]] Result<LockView> view_of(const Wanted& wanted, const Moment& moment,
                                           std::chrono::milliseconds tolerance);

    /// True if a lease or ticket of `view_of` may have ended by `moment`, or was written before a clock was moved: then
    /// a node must be asked for the time.
    [[nodiscard]] bool may_have_ended(const Moment& moment) const;

    /// For comparisons: 0 for what was not there.
    [[nodiscard]] std::optional<KeyValue> record(const LockName& name) const { return seen_.at(name).record; }
    [[nodiscard]] std::optional<KeyValue> ticket(const LockName& name, std::uint64_t number) const;
    [[nodiscard]] Revision record_changed_in(const LockName& name) const;
    [[nodiscard]] Revision ticket_changed_in(const LockName& name, std::uint64_t number) const;
    /// True if the ticket was read by its id, and comes after those that were read from the head of the queue, perhaps
    /// with others in between.
    [[nodiscard]] bool is_deep(const LockName& name, std::uint64_t number) const;
    /// The number of the ticket that `tell` found for a waiter.
    [[nodiscard]] std::optional<std::uint64_t> place_of(const LockName& name, const LockId& waiter) const;
    [[nodiscard]] const std::vector<Wanted>& wanted() const { return wanted_; }
    [[nodiscard]] std::size_t planned() const;

private:
    [[nodiscard]] Traces traces_of(const LockName& name) const;

    struct Seen {
        std::optional<KeyValue> record{};
        std::map<std::string, KeyValue> tickets{};  ///< By key.
        std::vector<std::string> deep{};            ///< Keys of own tickets that are not among them.
        std::map<LockId, std::uint64_t> places{};
        std::uint64_t waiting = 0;
        bool has_past = false;
        std::optional<KeyValue> newest{};  ///< Events, where they are wanted for a Repair.
        std::optional<KeyValue> oldest{};
        bool is_queue_open = false;  ///< The prediction says nothing about its queue.
        Instant first_end = Instant::max();
    };

    const Keys& keys_;
    const std::vector<Wanted>& wanted_;
    Revision revision_ = 0;
    bool is_assumed_ = false;
    bool store_was_there_ = false;
    std::optional<KeyValue> meta_{};
    std::map<LockName, Seen> seen_{};
};

/// Stored bytes for the decoders.
[[nodiscard]] base::ByteView bytes_of(const std::string& value);

}  // namespace holdfast::stores::etcd
