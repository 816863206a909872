#include "stores/mysql/optimistic.hpp"

#include "stores/mysql/expect.hpp"

#include <algorithm>

namespace holdfast::stores::mysql {
namespace {

using Kind = AttemptError::Kind;

/// Keeps the packet far below what servers accept.
constexpr std::size_t most_changes = 100;

}  // namespace

std::optional<OptimisticBatch> OptimisticBatch::make(Optimistic& optimistic, std::span<const Request> requests,
                                                     const StoreId& expected, const ServerFacts& facts,
                                                     const Clock& clock) {
    // Without NOWAIT a batch that others share would wait for one of its locks.
    if (!facts.skips_locked || facts.many_clocks() || !std::ranges::all_of(requests, is_predictable))
        return std::nullopt;
    const auto arrival = optimistic.clock.on_arrival();
    Batch batch(requests);
    if (!arrival || batch.wanted().size() > most_changes) return std::nullopt;

    OptimisticBatch made(optimistic, {.store_id = expected, .judged = clock.judges()});
    made.now_ = made.expected_.judged.value_or(*arrival);
    for (const Wanted& wanted : batch.wanted()) {
        auto lock = optimistic.predict(wanted.name);
        if (!lock) return std::nullopt;
        // No lease is taken over, so nobody loses one by a clock that is ahead.
        made.now_ = not_before(lock->record, made.now_);
        made.before_.push_back(std::move(*lock));
    }
    Window& window = made.expected_.window;
    window = ServerClock::window_for(made.now_);
    for (const KnownLock& lock : made.before_) {
        if (lock.record.seq == 0) made.fresh_.insert(made.fresh_.end(), lock.record.name);
        if (!is_settled(lock.record, made.now_)) return std::nullopt;
        // Whether a lease has run out is not predicted: the server's clock decides, once the row is locked.
        if (lock.record.held)
            window.latest = std::min(window.latest, lock.record.held->lease.expires_at - std::chrono::milliseconds{1});
        batch.found(lock.record.name, LockView{.record = lock.record});
    }
    made.replies_ = batch.run(made.now_);
    if (!writes_every_record(made.replies_, batch)) return std::nullopt;
    made.changes_ = batch.changes();
    return made;
}

std::expected<void, OptimisticBatch::WriteError> OptimisticBatch::write(Connection& connection,
                                                                        Deadline deadline) const {
    const std::set<LockName> no_sessions;
    const Writing writing{changes_, now_, no_sessions, fresh_};
    Sql packet;
    if (changes_.size() >= changes_to_bind && connection.takes_rows()) {
        if (auto done = connection.stay_in_transactions(deadline); !done)
            return std::unexpected(WriteError{done.error()});
        for (auto& [text, rows] : bound_statements_for(writing, before_, expected_))
            if (auto done = connection.run(text, rows, deadline); !done)
                return std::unexpected(WriteError{done.error()});
    } else {
        // The rows that are there are locked first, in the order of their key, as by those who read.
        packet << "START TRANSACTION; " << expect_locks(before_) << statements_for(writing)
               << expect_rest(writing, expected_);
    }
    // Values are hexadecimal, so this counts the statements.
    const auto commit = static_cast<std::size_t>(std::ranges::count(packet.packet(), ';'));
    const auto answers = connection.run(packet << "COMMIT", deadline);
    if (answers) return {};
    const Failure& failure = answers.error();
    return std::unexpected(
        WriteError{failure, !failure.answered() || (failure.statement >= commit && !failure.rolled_back())});
}

std::optional<AttemptResult> OptimisticBatch::run(Connection& connection, Deadline deadline) {
    const auto written = write(connection, deadline);
    if (written) {
        for (const Change& change : changes_) optimistic_->remember({*change.record, now_});
        return std::move(replies_);
    }
    const Failure& failure = written.error().failure;
    if (written.error().may_be_committed) {
        const kernel::Record& record = *changes_.front().record;
        const Error unknown{Errc::outcome_unknown, "the database did not say whether it committed: " + failure.text};
        AttemptError error{Kind::in_doubt, unknown};
        error.doubt = std::make_shared<const InDoubt>(
            InDoubt{record.name, record.seq, record.chain, std::move(replies_), unknown});
        return std::unexpected(std::move(error));
    }
    mispredicted(failure);
    // Undo what it has written now: beginning the next transaction would commit it.
    if (!connection.is_usable() || !connection.run(Sql("ROLLBACK"), deadline)) {
        connection.discard();
        return std::unexpected(AttemptError{Kind::connection_lost, error_of(failure, "write the locks")});
    }
    return std::nullopt;
}

void OptimisticBatch::mispredicted(const Failure& failure) {
    for (const Change& change : changes_) optimistic_->mark_contended(change.name);
    if (failure.duplicate()) optimistic_->mispredicted_new_lock();
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
