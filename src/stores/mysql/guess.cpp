#include "stores/mysql/guess.hpp"

#include "stores/mysql/expect.hpp"

#include <algorithm>

namespace holdfast::stores::mysql {
namespace {

using Remedy = Trouble::Remedy;

/// Keeps the packet far below what servers accept.
constexpr std::size_t most_changes = 100;

/// Whether a guess can be made of what it hangs on. And repeated, its outcome is the same.
bool is_simple(const Request& request) {
    if (const auto* acquire = std::get_if<Acquire>(&request)) return acquire->unless_held.empty();
    return std::holds_alternative<Renew>(request) || std::holds_alternative<Release>(request);
}

/// Everything that was asked for leads to a change of a record, which is compared with what is there, and none of the
/// queue, which has to be empty.
bool is_sound(std::span<const Reply> replies, const Batch& batch) {
    const auto writes_record = [](const Change& change) {
        return change.record && !change.events.empty() && change.put.empty() && change.dropped.empty() && !change.cut;
    };
    return std::ranges::all_of(replies, &Reply::has_value) && batch.changes().size() == batch.wanted().size() &&
           std::ranges::all_of(batch.changes(), writes_record);
}

}  // namespace

std::optional<Guess> Guess::make(Knowledge& knowledge, std::span<const Request> requests, const StoreId& expected,
                                 const ServerFacts& facts, const Clock& clock) {
    // Without NOWAIT a batch that others share would wait for one of its locks.
    if (!facts.skips_locked || facts.many_clocks() || !std::ranges::all_of(requests, is_simple)) return std::nullopt;
    const auto arrival = knowledge.clock.on_arrival();
    Batch batch(requests);
    if (!arrival || batch.wanted().size() > most_changes) return std::nullopt;

    Guess guess(knowledge, {.store_id = expected, .judged = clock.judges()});
    guess.now_ = guess.expected_.judged.value_or(*arrival);
    for (const Wanted& wanted : batch.wanted()) {
        auto lock = knowledge.locks.guess(wanted.name);
        if (!lock) return std::nullopt;
        // No lease is taken over, so nobody loses his by a clock that is ahead.
        guess.now_ = not_before(lock->record, guess.now_);
        guess.before_.push_back(std::move(*lock));
    }
    Window& window = guess.expected_.window;
    window = ServerClock::window_for(guess.now_);
    for (const Memory::Known& lock : guess.before_) {
        if (lock.record.seq == 0) guess.fresh_.insert(guess.fresh_.end(), lock.record.name);
        if (lock.record.changed_at > guess.now_) return std::nullopt;
        if (lock.record.held) {
            // Whether it has run out is not guessed: the server's clock says so, when the row is ours.
            const Instant expires_at = lock.record.held->lease.expires_at;
            if (expires_at <= guess.now_) return std::nullopt;
            window.latest = std::min(window.latest, expires_at - std::chrono::milliseconds{1});
        }
        batch.found(lock.record.name, LockView{.record = lock.record});
    }
    guess.replies_ = batch.run(guess.now_);
    if (!is_sound(guess.replies_, batch)) return std::nullopt;
    guess.changes_ = batch.changes();
    return guess;
}

std::optional<Guess::Setback> Guess::write(Connection& connection, Deadline deadline) const {
    const std::set<LockName> no_sessions;
    const Writing writing{changes_, now_, no_sessions, fresh_};
    Sql packet;
    if (changes_.size() >= changes_to_bind && connection.takes_rows()) {
        if (auto done = connection.stay_in_transactions(deadline); !done) return Setback{done.error()};
        for (auto& [text, rows] : bound_statements_for(writing, before_, expected_))
            if (auto done = connection.run(text, rows, deadline); !done) return Setback{done.error()};
    } else {
        // The rows that are there are locked first, in the order of their key, as by those who read.
        packet << "START TRANSACTION; " << expect_locks(before_) << statements_for(writing)
               << expect_rest(writing, expected_);
    }
    // Values are hexadecimal, so this counts the statements.
    const auto commit = static_cast<std::size_t>(std::ranges::count(packet.packet(), ';'));
    const auto answers = connection.run(packet << "COMMIT", deadline);
    if (answers) return std::nullopt;
    const Failure& failure = answers.error();
    return Setback{failure, !failure.answered() || (failure.statement >= commit && !failure.rolled_back())};
}

std::optional<std::expected<std::vector<Reply>, Trouble>> Guess::run(Connection& connection, Deadline deadline) {
    const auto setback = write(connection, deadline);
    if (!setback) {
        was_right();
        return std::move(replies_);
    }
    const Failure& failure = setback->failure;
    if (setback->may_be_done) {
        const kernel::Record& record = *changes_.front().record;
        return std::unexpected(
            Trouble{Remedy::look,
                    {Errc::outcome_unknown, "the database did not say whether it committed: " + failure.text},
                    {},
                    std::make_shared<const Doubt>(Doubt{record.name, record.seq, record.chain, std::move(replies_)})});
    }
    was_wrong(failure);
    // What it has written goes now: whoever begins a transaction commits the one before.
    if (!connection.usable() || !connection.run(Sql("ROLLBACK"), deadline)) {
        connection.discard();
        return std::unexpected(Trouble{Remedy::reconnect, error_of(failure, "write the locks")});
    }
    return std::nullopt;
}

void Guess::was_right() {
    for (const Change& change : changes_) knowledge_->locks.remember({*change.record, now_});
}

void Guess::was_wrong(const Failure& failure) {
    for (const Change& change : changes_) knowledge_->locks.avoid(change.name);
    if (failure.duplicate()) knowledge_->locks.took_for_new();
}

void learn(Memory& memory, std::span<const Request> requests, std::span<const Reply> replies,
           std::span<const Change> changes, Instant now) {
    std::set<LockName> used_by_others;
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (!replies[i] || replies[i]->lock.waiters > 0) used_by_others.insert(name_of(requests[i]));
    for (const LockName& name : used_by_others) memory.avoid(name);
    for (const Change& change : changes)
        if (change.record && !used_by_others.contains(change.name)) memory.remember({*change.record, now});
}

}  // namespace holdfast::stores::mysql
