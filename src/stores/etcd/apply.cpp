#include "stores/etcd/apply.hpp"

#include "stores/etcd/batch_txn.hpp"

#include <algorithm>

namespace holdfast::stores::etcd {
namespace {

/// Of several clients that change a lock at once one always succeeds, so few conflict again.
constexpr int attempts_without_pause = 3;

/// A Prune has a record, an event, a removal and a queue to read. It counts as more operations, so that few are in one
/// transaction: while etcd removes a thousand events, all other requests wait.
constexpr std::size_t operations_of_prune = 16;

/// How many operations this request needs in the longest list of a transaction.
std::size_t operations_for(const Request& request) {
    if (std::holds_alternative<Prune>(request)) return operations_of_prune;
    // Alone: it removes the whole queue, in which no other request may then change a key.
    if (std::holds_alternative<Repair>(request)) return Txn::most_operations;
    // Reading: record, queue, own ticket, others. Then, of those without a record, once more and their past, and the
    // own ticket wherever it is.
    const std::size_t others = kernel::others_of(request).size();
    const std::size_t reading = std::max(3 + others, 2 * (1 + others) + 1);
    // Writing: record, event, ticket and its index, and its old place.
    const auto* acquire = std::get_if<Acquire>(&request);
    const bool stays_out = (acquire != nullptr && !acquire->ticket) || !kernel::ticket_of(request);
    return std::max<std::size_t>(reading, stays_out ? 4 : 5);
}

/// How many of `requests` fit into one transaction, at least one.
std::size_t fitting(std::span<const Request> requests) {
    // One for the identity of the store, one for the evidence of the change, one for the mark of use.
    constexpr std::size_t room = Txn::most_operations - 3;
    std::size_t needed = 0;
    std::size_t count = 0;
    for (const Request& request : requests) {
        needed += operations_for(request);
        if (count > 0 && needed > room) break;
        ++count;
    }
    return count;
}

/// Requests that go into one transaction: read, decide, and write if nothing that was read has changed meanwhile.
class TxnRun {
public:
    TxnRun(const ApplyContext& context, std::span<const Request> requests, base::CallBudget& budget)
        : remote_(context.remote),
          context_(context),
          requests_(requests),
          budget_(budget),
          batch_(requests),
          view_(remote_.keys(), batch_.wanted()) {}

    Result<std::vector<Reply>> run() {
        const auto predicted = predict();
        Result<Moment> moment = predicted ? Result<Moment>(*predicted) : look();
        for (int attempt = 0; moment; ++attempt) {
            if (auto decided = decide(*moment); !decided) return std::unexpected(decided.error());
            // A prediction is good enough to try, and not to refuse.
            if (view_.is_assumed() && (!all_granted() || batch_.changes().empty())) {
                moment = look();
                continue;
            }
            if (batch_.changes().empty()) return std::move(replies_);
            changes_ = batch_.changes();
            begin_late(replies_, changes_, *moment);
            const BatchTxn txn(remote_.keys(), view_, changes_, *moment, remote_.was_used());
            auto answer = remote_.write(txn.message(), budget_);
            if (!answer) return std::unexpected(answer.error());
            learn(txn, *answer, *moment);
            const bool maybe_done = !answer->txn.succeeded && answer->maybe_repeated;
            const Earlier earlier = maybe_done ? txn.earlier_copy(view_, answer->txn) : Earlier::not_done;
            if (answer->txn.succeeded || earlier == Earlier::done) {
                has_changed_ = true;
                return std::move(replies_);
            }
            if (earlier == Earlier::unknown)
                return fail(Errc::outcome_unknown,
                            "etcd did not answer at once, and the audit event that would show whether it did what it "
                            "was asked was pruned meanwhile");
            if (budget_.over())
                return fail(Errc::store_unavailable, "others kept changing the lock until the time was over");
            // Another client was faster. The answer shows the present state, but not the state after a pause.
            const bool pauses = attempt >= attempts_without_pause;
            if (pauses) pause_after(attempt - attempts_without_pause, budget_);
            moment = txn.reads_otherwise() && !pauses ? take(std::move(*answer)) : look();
        }
        return std::unexpected(moment.error());
    }

    [[nodiscard]] bool has_changed() const { return has_changed_; }

private:
    using Earlier = BatchTxn::Earlier;

    [[nodiscard]] bool all_granted() const { return std::ranges::all_of(replies_, &Reply::has_value); }

    /// What time it is, if everything can be predicted.
    std::optional<Moment> predict() {
        const auto meta = remote_.meta();
        const auto moment = remote_.node_clock().reckoned();
        if (!meta || remote_.is_old() || !moment) return std::nullopt;
        return context_.optimistic.predict(view_, requests_, *meta) ? moment : std::nullopt;
    }

    /// Reads everything that the batch needs. Creates or upgrades the store first, if necessary.
    Result<Moment> look() {
        // A Check is granted without a change, so no comparison would notice that what was read is old.
        const bool checks =
            std::ranges::any_of(requests_, [](const Request& r) { return std::holds_alternative<Check>(r); });
        while (true) {
            auto moment = remote_.look(view_, budget_, checks ? Remote::Order::by_log : Remote::Order::by_one_node);
            if (!moment) return moment;
            const auto exists = remote_.exists(view_);
            if (!exists) return std::unexpected(exists.error());
            if (*exists && !remote_.is_old()) {
                context_.optimistic.learn(view_);
                return moment;
            }
            const auto made = *exists ? remote_.upgrade(budget_) : remote_.create(budget_);
            if (!made) return std::unexpected(made.error());
        }
    }

    /// The same without a look, from the answer to a write that came too late.
    Result<Moment> take(Remote::Answer answer) {
        if (auto taken = view_.take(std::move(answer.txn)); !taken) return std::unexpected(taken.error());
        const auto exists = remote_.exists(view_);
        if (!exists) return std::unexpected(exists.error());
        if (auto rest = remote_.complete(view_, budget_); !rest) return std::unexpected(rest.error());
        context_.optimistic.learn(view_);
        return remote_.moment(budget_);
    }

    /// Decides by the state that was read or predicted. If a lease or ticket may have ended, asks a node for the time
    /// and updates `moment`.
    Result<void> decide(Moment& moment) {
        view_.tell(batch_, moment, remote_.node_clock().tolerance(moment));
        if (view_.may_have_ended(moment)) {
            const auto looked = remote_.look_at_clock(budget_);
            if (!looked) return std::unexpected(looked.error());
            moment = *looked;
            view_.tell(batch_, moment, remote_.node_clock().tolerance(moment));
        }
        replies_ = batch_.run(moment.now, remote_.node_clock().margin());
        return {};
    }

    /// Remembers the state that an answer shows, for later predictions.
    void learn(const BatchTxn& txn, const Remote::Answer& answer, const Moment& moment) {
        const bool succeeded = answer.txn.succeeded;
        if (succeeded && view_.is_assumed()) count_waiters(answer.txn, moment);
        if (succeeded && txn.marks_used()) remote_.now_used();
        for (const Change& change : changes_) {
            const auto record = txn.records().find(change.name);
            if (!succeeded || record == txn.records().end()) {
                context_.optimistic.forget(change.name);
                continue;
            }
            const bool is_quiet = view_.waiting(change.name) == 0 && change.put.empty();
            const KeyValue written{remote_.keys().record(change.name), record->second, answer.txn.revision};
            context_.optimistic.remember(change.name, written, is_quiet);
        }
        if (succeeded && txn.reads_queue()) predict_wait(changes_.front(), txn, answer.txn, moment);
    }

    /// A change that was made without a look learns from its answer how many wait.
    void count_waiters(const TxnAnswer& answer, const Moment& moment) {
        view_.take_queues(answer, moment, remote_.node_clock().tolerance(moment));
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (replies_[i]) replies_[i]->lock.waiters = view_.waiting(name_of(requests_[i]));
    }

    /// The transaction that gave a waiter its ticket has read what the waiter must watch.
    void predict_wait(const Change& change, const BatchTxn& txn, const TxnAnswer& answer, const Moment& moment) {
        // A clock that is moved by hand may show any time when the wait begins.
        if (context_.clock.judges() || change.put.size() != 1 || answer.found.empty()) return;
        std::optional<KeyValue> record = view_.record(change.name);
        if (const auto written = txn.records().find(change.name); written != txn.records().end())
            record = {remote_.keys().record(change.name), written->second, answer.revision};
        const LockId& waiter = change.put.front().lock_id;
        auto target =
            predict_wait_target(remote_, change.name, waiter,
                                {view_.meta(), std::move(record), answer.found.back(), answer.revision, moment});
        if (target) context_.wait_predictions.remember(waiter, std::move(*target));
    }

    Remote& remote_;
    const ApplyContext& context_;
    const std::span<const Request> requests_;
    base::CallBudget& budget_;
    Batch batch_;
    BatchView view_;
    std::vector<Reply> replies_{};
    std::vector<Change> changes_{};
    bool has_changed_ = false;
};

}  // namespace

Result<std::vector<Reply>> apply_batch(const ApplyContext& context, std::span<const Request> requests,
                                       Deadline deadline) {
    base::CallBudget budget(context.clock, deadline);
    std::vector<Reply> replies;
    bool has_changed = false;
    do {
        const std::size_t count = fitting(requests);
        TxnRun run(context, requests.first(count), budget);
        auto some = run.run();
        if (!some) {
            if (has_changed) some.error().code = Errc::outcome_unknown;
            return std::unexpected(some.error());
        }
        has_changed = has_changed || run.has_changed();
        std::ranges::move(*some, std::back_inserter(replies));
        requests = requests.subspan(count);
    } while (!requests.empty());
    return replies;
}

}  // namespace holdfast::stores::etcd
