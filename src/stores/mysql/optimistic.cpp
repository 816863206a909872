#include "stores/mysql/optimistic.hpp"

#include <algorithm>

namespace holdfast::stores::mysql {
namespace {

using Kind = AttemptError::Kind;

/// Keeps the packet far below what servers accept.
constexpr std::size_t most_locks = 100;

}  // namespace

std::optional<OptimisticBatch> OptimisticBatch::make(Optimistic& optimistic, std::span<const Request> requests,
                                                     const StoreId& expected, const ServerFacts& facts,
                                                     const Clock& clock) {
    // Without NOWAIT a shared batch would wait for its locks.
    if (!facts.skips_locked || facts.many_clocks() || !std::ranges::all_of(requests, is_predictable))
        return std::nullopt;
    const auto arrival = optimistic.clock.on_arrival();
    Batch batch(requests);
    if (!arrival || batch.wanted().size() > most_locks) return std::nullopt;

    OptimisticBatch made(optimistic, {.store_id = expected, .judged = clock.judges()});
    made.now_ = made.prediction_.judged.value_or(*arrival);
    for (const Wanted& wanted : batch.wanted()) {
        auto lock = optimistic.predict(wanted.name);
        if (!lock) return std::nullopt;
        // No lease is taken over, so a clock that is ahead ends no lease early.
        made.now_ = not_before(lock->record, made.now_);
        made.prediction_.before.push_back(std::move(*lock));
    }
    Window& window = made.prediction_.window;
    window = ServerClock::window_for(made.now_);
    for (const KnownLock& lock : made.prediction_.before) {
        if (!is_settled(lock.record, made.now_)) return std::nullopt;
        if (lock.record.seq == 0) made.fresh_.insert(lock.record.name);
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

std::optional<OptimisticBatch::NotWritten> OptimisticBatch::write(Connection& connection, Deadline deadline) const {
    const std::set<LockName> no_sessions;
    const Writing writing{changes_, now_, no_sessions, fresh_};
    Sql packet;
    if (changes_.size() >= changes_to_bind && connection.takes_rows()) {
        std::size_t done = 0;
        for (auto& [text, rows, expected_count] : bound_statements_for(writing, prediction_)) {
            auto count = connection.run(text, rows, deadline);
            if (!count) count.error().statement = done;
            if (!count) return NotWritten{count.error()};
            if (*count != expected_count) return NotWritten{};
            ++done;
        }
    } else {
        packet = statements_for(writing, prediction_);
    }
    // Values are hexadecimal, so this counts the statements before COMMIT.
    const auto commit = static_cast<std::size_t>(std::ranges::count(packet.packet(), ';'));
    const auto done = connection.run(packet << "COMMIT", deadline);
    if (done) return std::nullopt;
    const Failure& failure = done.error();
    return NotWritten{failure, !failure.answered() || (failure.statement >= commit && !failure.rolled_back())};
}

std::optional<AttemptResult> OptimisticBatch::run(Connection& connection, Deadline deadline) {
    const auto problem = write(connection, deadline);
    if (!problem) {
        for (const Change& change : changes_) optimistic_->remember({*change.record, now_});
        return std::move(replies_);
    }
    for (const Change& change : changes_) optimistic_->mark_contended(change.name);
    const Failure& failure = problem->failure;
    if (problem->in_doubt) {
        const kernel::Record& record = *changes_.front().record;
        const Error unknown{Errc::outcome_unknown, "the database did not say whether it committed: " + failure.text};
        AttemptError error{Kind::in_doubt, unknown};
        error.doubt = std::make_shared<const InDoubt>(
            InDoubt{record.name, record.seq, record.chain, std::move(replies_), unknown});
        return std::unexpected(std::move(error));
    }
    // As text a new lock that has a row is a duplicate; bound it breaks a constraint of the first statement.
    const bool breaks_constraint = failure.error_class() == sql::ErrorClass::constraint && failure.statement == 0;
    if (failure.duplicate() || (breaks_constraint && !fresh_.empty())) optimistic_->mispredicted_new_lock();
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
