#include "stores/mysql/apply.hpp"

#include "base/real_clock.hpp"
#include "stores/common/optimistic.hpp"
#include "stores/mysql/queue_rows.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::stores::mysql {
namespace {

using std::chrono::milliseconds;
using Kind = AttemptError::Kind;

/// MariaDB turns longer lists into a join, which would read the rows in another order.
constexpr std::size_t names_in_list = 500;
/// Keeps packets far below what servers accept.
constexpr std::size_t changes_in_packet = 100;

/// The clocks of a cluster's nodes differ by less.
constexpr milliseconds clock_difference{5000};

template <class T>
std::span<T> take_some(std::span<T>& all, std::size_t count) {
    const auto some = all.first(std::min(count, all.size()));
    all = all.subspan(some.size());
    return some;
}

Error no_time_left() { return {Errc::store_unavailable, "the time for this call is over; nothing was changed"}; }

/// The end of a locking read, which goes through the rows in the order of their key. SKIP LOCKED makes a locked row
/// look absent.
Sql::Text locking(Busy busy, const ServerFacts& facts) {
    if (busy == Busy::wait) return " FOR UPDATE";
    if (!facts.skips_locked) return " FOR UPDATE NOWAIT";
    return " FOR UPDATE SKIP LOCKED";
}

AttemptError final_error(Error error) { return {Kind::final, std::move(error)}; }

std::set<std::string> names_in(Answer& answer) {
    std::set<std::string> names;
    while (const auto row = answer.next()) names.emplace(row->text(0));
    return names;
}

Error became_read_only() { return {Errc::store_unavailable, "the server has become read-only; nothing was changed"}; }

Error gone() {
    return {.code = Errc::store_unavailable,
            .message = "the store in the database is gone; nothing was changed",
            .store_is_lost = true};
}

/// The store was replaced by a backup of an older format.
Error became_old() {
    return {
        Errc::format_unsupported,
        "the store has an older format than before; nothing was changed. Start the program again, which upgrades it"};
}

Error not_marked(const Failure& failure) {
    Error error = error_of(failure, "mark the store as used, which comes with its first lock");
    error.message += "; it takes the right to UPDATE (used) ON holdfast_meta, or let its owner take a lock once";
    return error;
}

/// All transactions that write the first lock of a store wait for each other here, so it is the last statement before
/// COMMIT.
constexpr Sql::Text mark_used = "UPDATE holdfast_meta SET used = 1 WHERE id = 1 AND used = 0; ";

}  // namespace

AttemptResult Transaction::run(const StoreId& expected) {
    if (auto done = read(expected); !done) {
        roll_back();
        return std::unexpected(done.error());
    }
    if (auto end = resolved()) {
        roll_back();
        return std::move(*end);
    }
    std::vector<Reply> replies = batch_.run(now_, facts_.many_clocks() ? clock_difference : milliseconds{0});
    if (batch_.changes().empty()) {
        roll_back();
        return replies;
    }
    if (auto done = write(); !done) {
        roll_back();
        return std::unexpected(done.error());
    }
    return replies;
}

Transaction::Done Transaction::read(const StoreId& expected) {
    const std::span<const Wanted> wanted = batch_.wanted();
    std::vector<LockName> names;
    for (const Wanted& lock : wanted) names.push_back(lock.name);

    // The rows are locked first, in the order of their key, so that two batches never deadlock; the hint prevents a
    // scan of a small table, which would lock every row. Only then the clock is read, in a statement of its own, since
    // NOW shows the time at which its statement began, before any wait.
    Sql sql = facts_.flavour == Flavour::tidb ? Sql("BEGIN PESSIMISTIC") : Sql("START TRANSACTION");
    const std::size_t lists = lock_rows(sql, names);
    sql << "; " << Queues::first_look(wanted, clock_);
    sight_.sent = base::real_clock().boottime();
    auto answers = connection_.run(sql, deadline_);
    sight_.received = base::real_clock().boottime();
    if (!answers) return std::unexpected(after_reading(answers.error()));

    Queues queues;
    const auto identity = queues.take_first_look((*answers)[1 + lists], wanted);
    if (!identity) return std::unexpected(final_error(identity.error()));
    if (!*identity || (*identity)->store_id != expected) return std::unexpected(final_error(gone()));
    if ((*identity)->is_old()) return std::unexpected(final_error(became_old()));
    // Even a user that may write to a read-only server must not: by now another server grants the locks.
    if ((*identity)->read_only) return std::unexpected(final_error(became_read_only()));
    was_used_ = (*identity)->was_used;
    now_ = sight_.time = (*identity)->now;
    const Judging judging{now_, facts_.many_clocks() ? clock_difference : slewing};

    if (!queues.seen_all()) {
        auto more = connection_.run(Queues::second_look(wanted, now_), deadline_);
        if (!more) return std::unexpected(after_reading(more.error()));
        queues.take_second_look(*more);
    }

    std::set<LockName> missing(names.begin(), names.end());
    std::vector<std::pair<const Wanted*, Error>> damaged;
    for (Answer& list : std::span(*answers).subspan(1, lists)) {
        while (const auto row = list.next()) {
            const auto name = std::ranges::lower_bound(names, row->text(0), {}, &LockName::text);
            if (name == names.end() || name->text() != row->text(0)) continue;
            missing.erase(*name);
            const Wanted& lock = wanted[static_cast<std::size_t>(name - names.begin())];
            auto view = view_in(*row, lock, queues, judging);
            if (!view && lock.repairs)
                damaged.emplace_back(&lock, view.error());
            else
                batch_.found(*name, std::move(view));
        }
    }
    for (const auto& [lock, why] : damaged) {
        const auto told = tell(batch_, *lock, std::unexpected(why), [&]() -> Result<kernel::Damage> {
            auto traces = connection_.run(select_traces(lock->name), deadline_);
            if (!traces) return std::unexpected(error_of(traces.error(), "look at what is damaged"));
            return read_damage(traces->front(), lock->name, queues.stored_of(lock->name), judging);
        });
        if (!told) return std::unexpected(final_error(told.error()));
    }
    if (missing.empty()) return {};
    return look_again({missing.begin(), missing.end()});
}

Result<LockView> Transaction::view_in(const Row& row, const Wanted& wanted, const Queues& queues,
                                      const Judging& judging) {
    const LockName& name = wanted.name;
    auto record = read_lock(row, name, judging);
    if (!record) return std::unexpected(record.error());
    if (*record && batch_.wanted().size() == 1) now_ = not_before((*record)->value, now_);
    if (*record && doubt_ != nullptr && doubt_->name == name)
        verdict_ = doubt_->judge((*record)->value.seq, (*record)->value.chain);
    if (*record) judge_session(row, wanted, (*record)->value);
    LockView view{.record = *record ? std::move((*record)->value) : kernel::blank(name),
                  .moved = *record && (*record)->moved};
    if (auto added = queues.add_to(view, name, judging); !added) return std::unexpected(added.error());
    return view;
}

std::optional<AttemptResult> Transaction::resolved() const {
    switch (verdict_) {
        case InDoubt::Verdict::not_committed: return std::nullopt;
        case InDoubt::Verdict::committed: return doubt_->replies;
        case InDoubt::Verdict::unknowable: return std::unexpected(final_error(doubt_->error));
    }
    return std::nullopt;
}

std::size_t Transaction::lock_rows(Sql& sql, std::span<const LockName> names) const {
    std::size_t lists = 0;
    for (; !names.empty(); ++lists)
        sql << "; " << select_lock << " FROM holdfast_locks l FORCE INDEX (PRIMARY) WHERE l.name IN "
            << list_of(take_some(names, names_in_list)) << " ORDER BY l.name" << locking(busy_, facts_);
    return lists;
}

void Transaction::judge_session(const Row& row, const Wanted& wanted, kernel::Record& record) {
    if (!session_in(row) || !record.held) return;
    Lease& lease = record.held->lease;
    bound_.insert_or_assign(wanted.name, lease.lock_id);
    // The holder itself repeats its request after a lost answer, and takes nothing over.
    const bool own = std::ranges::find(wanted.own_tickets, lease.lock_id) != wanted.own_tickets.end();
    if (sessions_.gained.contains(wanted.name) && !own) lease.expires_at = std::min(lease.expires_at, now_);
}

std::set<LockName> Transaction::sessions_to_write() const {
    std::set<LockName> found;
    for (const Change& change : batch_.changes()) {
        if (!change.record || !change.record->held) continue;
        const LockId& lock_id = change.record->held->lease.lock_id;
        const auto before = bound_.find(change.name);
        const auto wanted = std::ranges::lower_bound(batch_.wanted(), change.name, {}, &Wanted::name);
        const bool asked_for = std::ranges::find(wanted->own_tickets, lock_id) != wanted->own_tickets.end();
        const bool stays = before != bound_.end() && before->second == lock_id && !sessions_.lost.contains(change.name);
        if (stays || (asked_for && wanted->may_create && sessions_.has(change.name))) found.insert(change.name);
    }
    return found;
}

Transaction::Done Transaction::make_ready(const std::vector<LockName>& names) {
    // In a transaction of its own, which ends before any row is locked: two batches that insert rows while they hold
    // locks can deadlock.
    Sql sql("ROLLBACK");
    for (std::span<const LockName> rest = names; !rest.empty();) {
        sql << "; INSERT IGNORE INTO holdfast_locks (name) VALUES ";
        Comma comma;
        for (const LockName& name : take_some(rest, names_in_list)) {
            sql << comma.next() << "(";
            sql.value(name.text()) << ")";
        }
    }
    const auto made = connection_.run(sql << "; COMMIT", deadline_);
    if (!made) return std::unexpected(after_reading(made.error()));
    return std::unexpected(AttemptError{Kind::prepared, {Errc::store_unavailable, "others keep changing the locks"}});
}

Transaction::Done Transaction::look_again(const std::vector<LockName>& names) {
    // The row is read again after the history: both may have been written since the row was found missing.
    Sql sql;
    sql << "SELECT name FROM holdfast_audit WHERE name IN " << list_of(names) << " GROUP BY name; "
        << "SELECT name FROM holdfast_locks WHERE name IN " << list_of(names);
    auto answers = connection_.run(sql, deadline_);
    if (!answers) return std::unexpected(after_reading(answers.error()));
    const std::set<std::string> used = names_in(answers->front());
    const std::set<std::string> found = names_in(answers->back());
    std::vector<LockName> there;
    std::vector<LockName> rows_to_insert;
    for (const LockName& name : names) {
        if (found.contains(name.text())) {
            there.push_back(name);
        } else if (used.contains(name.text())) {
            if (std::ranges::lower_bound(batch_.wanted(), name, {}, &Wanted::name)->repairs)
                rows_to_insert.push_back(name);
            else
                batch_.found(name, std::unexpected(unreadable(name, "the record")));
        } else {
            batch_.found(name, LockView{.record = kernel::blank(name)});
            new_.insert(name);
            if (std::ranges::lower_bound(batch_.wanted(), name, {}, &Wanted::name)->excludes)
                rows_to_insert.push_back(name);
        }
    }
    if (!there.empty()) return std::unexpected(rows_are_locked(std::move(there)));
    // Two Acquires that exclude each other must lock the same row, even if neither writes it, so it is inserted here.
    // All other first uses of a lock write its row themselves, and only one of them succeeds.
    return rows_to_insert.empty() ? Done() : make_ready(rows_to_insert);
}

Transaction::Done Transaction::write() {
    if (deadline_.passed(clock_)) return std::unexpected(final_error(no_time_left()));
    const std::set<LockName> sessions = sessions_to_write();
    const bool marks = !was_used_ && std::ranges::any_of(batch_.changes(), [](const Change& change) {
        return change.record.has_value();
    });
    for (std::span<const Change> rest = batch_.changes(); !rest.empty();) {
        const Writing writing{take_some(rest, changes_in_packet), now_, sessions, new_};
        const auto is_new = [&](const Change& change) { return new_.contains(change.name); };
        const std::size_t added = std::ranges::any_of(writing.changes, is_new) ? 1 : 0;
        std::size_t done = 0;
        Sql sql;
        if (writing.changes.size() >= changes_to_bind && connection_.takes_rows()) {
            for (BoundStatement& statement : bound_statements_for(writing)) {
                auto written = connection_.run(statement.text, statement.rows, deadline_);
                if (!written) {
                    written.error().statement = done;
                    return std::unexpected(after_writing(written.error(), added, std::nullopt));
                }
                ++done;
            }
        } else {
            sql = statements_for(writing);
        }
        sql << put_tickets(writing.changes, now_) << cut_events(writing.changes);
        if (rest.empty()) sql << (marks ? mark_used : Sql::Text("")) << "COMMIT";
        if (sql.empty()) continue;
        auto written = connection_.run(sql, deadline_);
        if (written) continue;
        written.error().statement += done;
        // Values are hexadecimal, so this counts the statements before COMMIT.
        const auto commit = done + static_cast<std::size_t>(std::ranges::count(sql.packet(), ';'));
        if (rest.empty() && marks && written.error().statement + 1 == commit && written.error().denied())
            return std::unexpected(final_error(not_marked(written.error())));
        return std::unexpected(
            after_writing(written.error(), added, rest.empty() ? std::optional(commit) : std::nullopt));
    }
    was_used_ |= marks;
    return {};
}

void Transaction::roll_back() {
    // A lock wait that timed out has undone one statement and left the transaction open: without this, the next
    // one would commit the rest of it.
    if (!connection_.is_usable()) return;
    if (!connection_.run(Sql("ROLLBACK"), deadline_)) connection_.discard();
}

AttemptError Transaction::after_reading(const Failure& failure) {
    const Error error =
        failure.lost() && deadline_.passed(clock_) ? no_time_left() : error_of(failure, "read the locks");
    if (failure.no_such_table()) return {Kind::final, gone()};
    if (failure.no_such_column()) return {Kind::final, became_old()};
    if (failure.row_busy() && busy_ == Busy::report) return {Kind::locks_busy, error};
    if (failure.conflict()) return {Kind::conflict, error};
    return {failure.lost() ? Kind::connection_lost : Kind::final, error};
}

AttemptError Transaction::after_writing(const Failure& failure, std::size_t added, std::optional<std::size_t> commit) {
    // Once a packet with COMMIT has been sent, only the server knows how far it came. If it reports an earlier
    // statement as failed, it has changed nothing.
    const bool stopped_before = failure.answered() && failure.statement < commit.value_or(failure.statement + 1);
    const bool unknown = commit && !stopped_before && !(failure.answered() && failure.rolled_back());
    if (unknown)
        return {Kind::final, {Errc::outcome_unknown, "the database did not say whether it committed: " + failure.text}};
    const Error error = error_of(failure, "write the locks");
    if (failure.row_busy() && busy_ == Busy::report) return {Kind::locks_busy, error};
    // Another client has used the lock for the first time since our look.
    if (failure.duplicate() && failure.statement < added) return {Kind::conflict, error};
    // The next attempt writes everything as text, or prepares the statement again. This one cannot continue: a server
    // that has lost the prepared statement may have lost the transaction, too.
    if (failure.too_many_statements() || failure.statement_forgotten()) return {Kind::conflict, error};
    if (failure.conflict()) return {Kind::conflict, error};
    if (failure.lost()) return {Kind::connection_lost, error};
    if (failure.duplicate())
        return {Kind::one_spoils_all,
                {Errc::record_corrupt,
                 "the audit log of a lock goes on behind its record; the lock stays blocked until it is repaired"}};
    // Only pruning needs the right to remove events, so other requests must not fail for lack of it.
    const bool cuts =
        std::ranges::any_of(batch_.changes(), [](const Change& change) { return change.cut.has_value(); });
    if (failure.denied() && cuts) return {Kind::one_spoils_all, error};
    return {Kind::final, error};
}

AttemptError Transaction::rows_are_locked(std::vector<LockName> locks) const {
    return {busy_ == Busy::report ? Kind::locks_busy : Kind::conflict,
            {Errc::store_unavailable, "somebody else holds the row of a lock; nothing was changed"},
            std::move(locks)};
}

}  // namespace holdfast::stores::mysql
