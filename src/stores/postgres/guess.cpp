#include "stores/postgres/guess.hpp"

#include "stores/batch/sealed.hpp"
#include "stores/postgres/schema.hpp"
#include "stores/postgres/writing.hpp"

#include <algorithm>
#include <limits>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

/// Of each generation.
constexpr std::size_t most_locks = 4096;
/// How many unknown locks are read first when one was not as new as it seemed.
constexpr int reads_after_mistake = 32;
/// Longer than this a guess of the clock does not hold either.
constexpr milliseconds longest_row_wait{8};

/// Every ticket has a number below this.
constexpr std::int64_t no_number = std::numeric_limits<std::int64_t>::max();

/// Whether a guess can be made of what it hangs on. And repeated, its outcome is the same.
bool is_simple(const Request& request) {
    if (const auto* acquire = std::get_if<Acquire>(&request)) return acquire->unless_held.empty();
    return std::holds_alternative<Renew>(request) || std::holds_alternative<Release>(request);
}

/// Nothing hangs on a lease having run out, nor is the clock behind an event that it has shown already.
bool is_settled(const kernel::Record& record, Instant now) {
    return record.changed_at <= now && (!record.held || record.held->lease.expires_at > now);
}

/// Everything that was asked for leads to a change, which is compared with what is there.
bool is_sound(std::span<const Reply> replies, const Batch& batch) {
    const auto writes_record = [](const Change& change) { return change.record && change.put.empty(); };
    return std::ranges::all_of(replies, &Reply::has_value) && batch.changes().size() == batch.wanted().size() &&
           std::ranges::all_of(batch.changes(), writes_record);
}

/// The same lease before and after.
bool is_kept(const kernel::Record& before, const kernel::Record& after) {
    return before.held && after.held && before.held->lease.lock_id == after.held->lease.lock_id;
}

std::int64_t count(Instant instant) { return instant.time_since_epoch().count(); }

}  // namespace

Instant not_before(const kernel::Record& record, Instant now) {
    const Instant event = record.changed_at;
    return event > now && event - now <= slewing ? event : now;
}

const std::optional<Memory::Lock>* Memory::find(const LockName& name) const {
    for (const Locks* locks : {&newer_, &older_})
        if (const auto found = locks->find(name.text()); found != locks->end()) return &found->second;
    return nullptr;
}

std::optional<Memory::Lock> Memory::guess(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    if (const auto* known = find(name)) return *known;
    if (reads_first_ > 0) {
        --reads_first_;
        return std::nullopt;
    }
    return Lock{kernel::blank(name)};
}

bool Memory::is_avoided(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    const auto* known = find(name);
    return known != nullptr && !*known;
}

void Memory::remember(Lock lock) {
    const std::string name = lock.record.name.text();
    keep(name, std::move(lock));
}

void Memory::avoid(const LockName& name) { keep(name.text(), std::nullopt); }

void Memory::keep(const std::string& name, std::optional<Lock> lock) {
    const std::scoped_lock guard(mutex_);
    if (newer_.size() >= most_locks) {
        older_ = std::move(newer_);
        newer_.clear();
    }
    newer_.insert_or_assign(name, std::move(lock));
}

void Memory::took_for_new() {
    const std::scoped_lock lock(mutex_);
    reads_first_ = reads_after_mistake;
}

std::optional<Guess> Guess::make(const Context& context, std::span<const Request> requests, const Budget& budget) {
    if (context.knowledge == nullptr || !context.store_id || !std::ranges::all_of(requests, is_simple))
        return std::nullopt;
    const auto arrival = context.knowledge->clock.on_arrival();
    if (!arrival) return std::nullopt;
    Instant now = context.clock.judges().value_or(*arrival);

    Batch batch(requests);
    std::vector<Memory::Lock> before;
    for (const Wanted& wanted : batch.wanted()) {
        auto lock = context.knowledge->locks.guess(wanted.name);
        if (!lock) return std::nullopt;
        if (batch.wanted().size() == 1) now = not_before(lock->record, now);
        if (!is_settled(lock->record, now)) return std::nullopt;
        LockView view{.record = lock->record};
        if (lock->first) {
            const kernel::Ticket& first = lock->first->ticket;
            if (first.expires_at <= now || !wanted.is_asked_for_once()) return std::nullopt;
            view.tickets = {first};
            view.last_number = first.number;
            view.waiters = 1;
        }
        batch.found(wanted.name, std::move(view));
        before.push_back(std::move(*lock));
    }
    Guess guess;
    guess.replies_ = batch.run(now);
    if (!is_sound(guess.replies_, batch) || budget.over()) return std::nullopt;
    guess.changes_ = batch.changes();

    LockRows fresh;
    LockRows known;
    Array was(Type::bytes), was_token(Type::number), was_lock_id(Type::uuid);
    Array dropped_names(Type::bytes), dropped(Type::uuid), dropped_data(Type::bytes);
    bool drops = false;
    Array names(Type::bytes), below(Type::number), last_seq(Type::number);
    for (std::size_t i = 0; i < guess.changes_.size(); ++i) {
        const kernel::Record& record = *guess.changes_[i].record;
        const Memory::Lock& lock = before[i];
        const base::Bytes& data = guess.data_.emplace_back(sealed(record, now));
        const bool is_new = lock.data.empty();
        (is_new ? fresh : known).add(record, data);
        if (!is_new) {
            was.add(base::ByteView(lock.data));
            was_token.add(lock.record.token.value);
            was_lock_id.add(lock.record.held ? std::optional(lock.record.held->lease.lock_id) : std::nullopt);
        }
        names.add(record.name.text());
        // Who keeps the lock does so whoever waits. To take it, or to give it back, one must know who is the first.
        std::optional<std::int64_t> limit = is_kept(lock.record, record) ? std::nullopt : std::optional(no_number);
        for (const kernel::Ticket& ticket : guess.changes_[i].dropped) {
            drops = true;
            dropped_names.add(record.name.text());
            dropped.add(ticket.lock_id);
            dropped_data.add(base::ByteView(lock.first->data));
            limit = static_cast<std::int64_t>(ticket.number);
        }
        below.add(limit);
        last_seq.add(is_new ? std::optional(record.seq) : std::nullopt);
    }

    const Statements& statements = context.statements;
    guess.trip_ = {Statement(statements.begin_change), enter(statements, budget, longest_row_wait)};
    // New ones first, as for those who read: who takes rows in another order may meet somebody who waits for him.
    if (!fresh.empty()) fresh.bind_to(guess.trip_.emplace_back(statements.put_new), now);
    if (!known.empty()) {
        Statement& put = guess.trip_.emplace_back(statements.put_known);
        known.bind_to(put, now);
        put.bind(was).bind(was_token).bind(was_lock_id);
    }
    if (drops)
        guess.trip_.push_back(Statement(statements.drop_known).bind(dropped_names).bind(dropped).bind(dropped_data));
    guess.trip_.push_back(add_events(statements, guess.changes_));
    add_wakes(guess.trip_, statements, guess.changes_);
    const Window window = ServerClock::window_for(now);
    Statement& confirm = guess.trip_.emplace_back(statements.confirm);
    confirm.bind(judged(context.clock)).bind(count(window.earliest)).bind(count(window.latest));
    confirm.bind(names).bind(below).bind(last_seq);
    confirm.bind(LockId(context.store_id->bytes())).bind(our_format);
    guess.trip_.emplace_back(statements.commit);
    return guess;
}

Result<Applied> Guess::read(const Context& context, std::span<const Request> requests, const Trip& trip) {
    const auto identity = read_identity(trip.answers[1]);
    if (!identity) return std::unexpected(identity.error());
    const Rows& confirmed = trip.answers[trip.answers.size() - 2];
    std::unordered_map<std::string_view, std::uint64_t> waiters;
    for (int row = 0; row < confirmed.count(); ++row)
        waiters[confirmed.text(row, 0)] = static_cast<std::uint64_t>(confirmed.number(row, 1));
    for (std::size_t i = 0; i < requests.size(); ++i) replies_[i]->lock.waiters = waiters[name_of(requests[i]).text()];
    for (std::size_t i = 0; i < changes_.size(); ++i) {
        // What was handed on is somebody else's to change; and who gives back what others wait for has to know them.
        if (waiters[changes_[i].name.text()] == 0 && !changes_[i].next)
            context.knowledge->locks.remember({*changes_[i].record, std::move(data_[i])});
        else
            context.knowledge->locks.avoid(changes_[i].name);
    }
    return Applied{std::move(replies_), *identity};
}

Doubt Guess::doubt(Error error) const {
    const kernel::Record& record = *changes_.front().record;
    return {record.name, record.seq, record.chain, replies_, std::move(error)};
}

void Guess::was_wrong(const Context& context) const {
    for (const Change& change : changes_) context.knowledge->locks.avoid(change.name);
}

void learn(Memory& memory, std::span<const Wanted> wanted, std::span<const Change> changes,
           std::span<const base::Bytes> data) {
    std::size_t at = 0;
    for (const Wanted& lock : wanted) {
        const Change* const change = at < changes.size() && changes[at].name == lock.name ? &changes[at] : nullptr;
        if (change != nullptr && change->record && !change->next)
            memory.remember({*change->record, data[at]});
        else
            memory.avoid(lock.name);
        if (change != nullptr) ++at;
    }
}

}  // namespace holdfast::stores::postgres
