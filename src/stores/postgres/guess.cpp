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

std::optional<Memory::Place> Memory::place_of(const LockId& ticket) {
    const std::scoped_lock lock(mutex_);
    const auto found = places_.find(ticket);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void Memory::joined(Place place) {
    const std::scoped_lock lock(mutex_);
    // Most are taken out when their owners are granted the lock. Who went away left his behind.
    if (places_.size() >= most_locks)
        std::erase_if(places_, [&](const auto& other) { return other.second.ticket.expires_at <= place.written_at; });
    const LockId id = place.ticket.lock_id;
    places_.insert_or_assign(id, std::move(place));
}

void Memory::left(const LockId& ticket) {
    const std::scoped_lock lock(mutex_);
    places_.erase(ticket);
}

std::optional<Guess> Guess::make(const Context& context, std::span<const Request> requests, const Budget& budget) {
    if (context.knowledge == nullptr || !context.store_id || !std::ranges::all_of(requests, is_simple))
        return std::nullopt;
    const auto arrival = context.knowledge->clock.on_arrival();
    if (!arrival) return std::nullopt;
    Instant now = context.clock.judges().value_or(*arrival);

    Batch batch(requests);
    std::vector<Memory::Lock> before;
    std::map<LockId, Memory::Place> places;
    for (const Wanted& wanted : batch.wanted()) {
        auto lock = context.knowledge->locks.guess(wanted.name);
        if (!lock) return std::nullopt;
        if (batch.wanted().size() == 1) now = not_before(lock->record, now);
        if (!is_settled(lock->record, now)) return std::nullopt;
        LockView view{.record = lock->record};
        for (const LockId& own : wanted.own_tickets) {
            auto place = context.knowledge->locks.place_of(own);
            if (!place) continue;
            if (place->ticket.expires_at <= now || !view.tickets.empty()) return std::nullopt;
            view.last_number = place->ticket.number;
            view.waiters = 1;
            view.tickets.push_back(place->ticket);
            places.insert_or_assign(own, std::move(*place));
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
    Array names(Type::bytes), below(Type::number), last_seq(Type::number), channels(Type::text);
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
        // Who holds the lock does so whoever waits. To take it, one must be the first of those who do.
        std::optional<std::int64_t> number = batch.wanted()[i].may_create ? std::optional(no_number) : std::nullopt;
        for (const kernel::Ticket& ticket : guess.changes_[i].dropped) {
            const Memory::Place& place = places.at(ticket.lock_id);
            drops = true;
            dropped_names.add(record.name.text());
            dropped.add(ticket.lock_id);
            dropped_data.add(base::ByteView(sealed(place.ticket, place.written_at)));
            number = static_cast<std::int64_t>(ticket.number);
        }
        below.add(number);
        last_seq.add(is_new ? std::optional(record.seq) : std::nullopt);
        channels.add(record.held ? std::nullopt : std::optional(channel_of(context.settings, record.name)));
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
    const Window window = ServerClock::window_for(now);
    Statement& confirm = guess.trip_.emplace_back(statements.confirm);
    confirm.bind(judged(context.clock)).bind(count(window.earliest)).bind(count(window.latest));
    confirm.bind(names).bind(below).bind(last_seq).bind(channels);
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
        const kernel::Record& record = *changes_[i].record;
        for (const kernel::Ticket& ticket : changes_[i].dropped) context.knowledge->locks.left(ticket.lock_id);
        // Who was called takes a free lock next.
        if (record.held || waiters[record.name.text()] == 0)
            context.knowledge->locks.remember({record, std::move(data_[i])});
        else
            context.knowledge->locks.avoid(record.name);
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
           std::span<const base::Bytes> data, Instant now) {
    std::size_t at = 0;
    for (const Wanted& lock : wanted) {
        const Change* const change = at < changes.size() && changes[at].name == lock.name ? &changes[at] : nullptr;
        if (change != nullptr && change->record && !change->next)
            memory.remember({*change->record, data[at]});
        else
            memory.avoid(lock.name);
        if (change == nullptr) continue;
        for (const kernel::Ticket& ticket : change->dropped) memory.left(ticket.lock_id);
        for (const kernel::Ticket& ticket : change->put) memory.joined({ticket, now});
        ++at;
    }
}

}  // namespace holdfast::stores::postgres
