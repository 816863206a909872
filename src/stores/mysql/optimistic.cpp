#include "stores/mysql/optimistic.hpp"

#include <algorithm>

namespace holdfast::stores::mysql {
namespace {

using Kind = AttemptError::Kind;

/// `name` is the lock's name as a literal.
Sql is_as_known(const KnownLock& lock, const Sql& name) {
    const kernel::Record& record = lock.record;
    // A lock without a row that has a history was used, and has lost its record.
    if (record.seq == 0)
        return Sql("NOT EXISTS (SELECT 1 FROM holdfast_audit FORCE INDEX (PRIMARY) WHERE name = ") << name << ")";
    Sql sql("EXISTS (SELECT 1 FROM holdfast_locks WHERE name = ");
    sql << name << " AND seq = " << record.seq << " AND token = " << record.token.value
        << " AND session = 0 AND lock_id ";
    if (record.held)
        (sql << "= ").value(record.held->lease.lock_id.text());
    else
        sql << "IS NULL";
    return (sql << " AND data = ").value(sealed(record, lock.written_at)) << ")";
}

/// The whole transaction. The row is locked first, without a wait; then the change is written if everything is as
/// predicted, the clock included, and its event if the change was.
Sql transaction(const Change& change, Instant now, const KnownLock& before, const StoreId& store_id,
                const Window& window, const Clock& clock) {
    Sql name;
    name.value(change.name.text());
    Sql packet("START TRANSACTION; ");
    if (!change.is_new)
        packet << "SELECT 1 FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE name = " << name << " FOR UPDATE NOWAIT; ";
    Sql predicted("FROM holdfast_meta WHERE ");
    (predicted << is_store << "store_id = ").value(store_id.text())
        << " AND " << now_of(clock) << " BETWEEN " << window.earliest << " AND " << window.latest
        << " AND NOT EXISTS (SELECT 1 FROM holdfast_queue FORCE INDEX (PRIMARY) WHERE name = " << name << ") AND "
        << is_as_known(before, name);
    Sql written("FROM holdfast_locks WHERE name = ");
    (written << name << " AND data = ").value(sealed(*change.record, now));
    return packet << put_lock_if(change, now, predicted) << add_event_if(change.events.front(), written) << "COMMIT";
}

}  // namespace

std::optional<OptimisticBatch> OptimisticBatch::make(Optimistic& optimistic, std::span<const Request> requests,
                                                     const StoreId& expected, const ServerFacts& facts,
                                                     const Clock& clock) {
    // Without NOWAIT a shared batch would wait for its lock.
    if (!facts.skips_locked || facts.many_clocks() || !std::ranges::all_of(requests, is_predictable))
        return std::nullopt;
    const auto arrival = optimistic.clock.on_arrival();
    Batch batch(requests);
    if (!arrival || batch.wanted().size() != 1) return std::nullopt;
    const auto before = optimistic.predict(batch.wanted().front().name);
    if (!before) return std::nullopt;

    OptimisticBatch made(optimistic);
    // No lease is taken over, so a clock that is ahead ends no lease early.
    made.now_ = not_before(before->record, clock.judges().value_or(*arrival));
    if (!is_settled(before->record, made.now_)) return std::nullopt;
    Window window = ServerClock::window_for(made.now_);
    // Whether a lease has run out is not predicted: the server's clock decides, once the row is locked.
    if (before->record.held)
        window.latest = std::min(window.latest, before->record.held->lease.expires_at - std::chrono::milliseconds{1});
    batch.found(before->record.name, LockView{.record = before->record});
    made.replies_ = batch.run(made.now_);
    if (!writes_every_record(made.replies_, batch)) return std::nullopt;
    made.changes_ = batch.changes();
    if (made.changes_.front().events.size() != 1) return std::nullopt;
    made.packet_ = transaction(made.changes_.front(), made.now_, *before, expected, window, clock);
    return made;
}

std::optional<AttemptResult> OptimisticBatch::run(Connection& connection, Deadline deadline) {
    const Change& change = changes_.front();
    const auto answers = connection.run(packet_, deadline);
    // The answers of the two writing statements come before that of COMMIT.
    if (answers && (*answers)[answers->size() - 3].count() != 0) {
        optimistic_->remember({*change.record, now_});
        return std::move(replies_);
    }
    optimistic_->mark_contended(change.name);
    if (answers) return std::nullopt;

    const Failure& failure = answers.error();
    // Values are hexadecimal, so this counts the statements before COMMIT.
    const auto commit = static_cast<std::size_t>(std::ranges::count(packet_.packet(), ';'));
    if (!failure.answered() || (failure.statement >= commit && !failure.rolled_back())) {
        const Error unknown{Errc::outcome_unknown, "the database did not say whether it committed: " + failure.text};
        AttemptError error{Kind::in_doubt, unknown};
        error.doubt = std::make_shared<const InDoubt>(
            InDoubt{change.name, change.record->seq, change.record->chain, std::move(replies_), unknown});
        return std::unexpected(std::move(error));
    }
    if (failure.duplicate()) optimistic_->mispredicted_new_lock();
    // Roll back now: the beginning of the next transaction would commit what was written.
    if (!connection.is_usable() || !connection.run(Sql("ROLLBACK"), deadline)) {
        connection.discard();
        return std::unexpected(AttemptError{Kind::connection_lost, error_of(failure, "write the locks")});
    }
    return std::nullopt;
}

void learn(Optimistic& optimistic, std::span<const Request> requests, std::span<const Reply> replies,
           std::span<const Change> changes, Instant now) {
    std::set<LockName> used_by_others;
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (!replies[i] || replies[i]->lock.waiters > 0) used_by_others.insert(name_of(requests[i]));
    for (const LockName& name : used_by_others) optimistic.mark_contended(name);
    for (const Change& change : changes)
        if (change.record && !used_by_others.contains(change.name)) optimistic.remember({*change.record, now});
}

}  // namespace holdfast::stores::mysql
