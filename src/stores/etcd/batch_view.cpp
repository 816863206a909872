#include "stores/etcd/batch_view.hpp"

#include "stores/common/sealed.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::stores::etcd {
namespace {

/// How many tickets are read beside those that the batch asks for. Expired tickets among them are removed, so up to
/// here the number of waiters is exact; later tickets count until they come near the head.
constexpr std::size_t more_tickets = 14;

/// Tickets are numbered by etcd's revision, which every change raises: a batch that read at a higher revision gets
/// a higher number, without reading the whole queue for its last one. A batch can make several.
constexpr unsigned numbers_per_revision_bits = 10;

/// When the first lease or question of the record ends. Unknown for deadlines that were moved.
Instant first_end_of(const LockView& view) {
    if (view.moved) return Instant::min();
    Instant first = Instant::max();
    if (view.record.held) first = std::min(first, view.record.held->lease.expires_at);
    if (view.record.pending) first = std::min(first, view.record.pending->ask.expires_at);
    return first;
}

}  // namespace

base::ByteView bytes_of(const std::string& value) {
    return {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()};
}

Get BatchView::queue_of(const Wanted& lock) const {
    return {.keys = keys_.tickets(lock.name), .limit = lock.depth + more_tickets};
}

void BatchView::plan(const std::function<void(const Get&)>& add) const {
    add({.keys = {keys_.meta()}});
    for (const Wanted& lock : wanted_) {
        add({.keys = {keys_.record(lock.name)}});
        if (lock.depth > 0) add(queue_of(lock));
        for (const LockId& own : lock.own_tickets) add({.keys = {keys_.ticket_index(lock.name, own)}});
    }
}

std::size_t BatchView::planned() const {
    std::size_t count = 0;
    plan([&](const Get&) { ++count; });
    return count;
}

Result<void> BatchView::take(TxnAnswer answer) {
    if (answer.found.size() < planned()) return fail(Errc::store_unavailable, "etcd did not answer everything");
    revision_ = answer.revision;
    store_was_there_ = answer.store_was_there;
    is_assumed_ = false;
    seen_.clear();
    auto next = answer.found.begin();
    const auto take_one = [&]() -> std::optional<KeyValue> {
        Found& found = *next++;
        if (found.keys.empty()) return std::nullopt;
        return std::move(found.keys.front());
    };
    meta_ = take_one();
    for (const Wanted& lock : wanted_) {
        Seen& seen = seen_[lock.name];
        seen.record = take_one();
        if (lock.depth > 0) {
            Found& queue = *next++;
            seen.waiting = queue.count;
            for (KeyValue& ticket : queue.keys) {
                std::string key = ticket.key;
                seen.tickets.emplace(std::move(key), std::move(ticket));
            }
        }
        for (std::size_t i = 0; i < lock.own_tickets.size(); ++i) {
            const auto index = take_one();
            const auto number = index ? number_in(index->value) : std::nullopt;
            if (!number) continue;
            std::string key = keys_.ticket(lock.name, *number);
            if (!seen.tickets.contains(key)) seen.deep.push_back(std::move(key));
        }
    }
    return {};
}

void BatchView::assume(KeyValue meta, std::vector<Assumed> locks) {
    revision_ = meta.changed_in;
    is_assumed_ = true;
    meta_ = std::move(meta);
    seen_.clear();
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        Seen& seen = seen_[wanted_[i].name];
        seen.record = std::move(locks[i].record);
        seen.is_queue_open = !locks[i].is_quiet;
        if (!locks[i].place) continue;
        seen.waiting = 1;
        std::string key = locks[i].place->key;
        seen.tickets.emplace(std::move(key), std::move(*locks[i].place));
    }
}

std::optional<KeyRange> BatchView::assumed_absent(const Wanted& lock) const {
    const Seen& seen = seen_.at(lock.name);
    KeyRange queue = keys_.tickets(lock.name);
    if (!seen.tickets.empty()) return KeyRange{queue.begin, seen.tickets.begin()->first};
    if (lock.depth == 0 || seen.is_queue_open) return std::nullopt;
    return queue;
}

void BatchView::plan_queues(const std::function<void(const Get&)>& add) const {
    for (const Wanted& lock : wanted_)
        if (lock.depth > 0 && seen_.at(lock.name).is_queue_open) add(queue_of(lock));
}

void BatchView::take_queues(const TxnAnswer& answer, const Moment& moment, std::chrono::milliseconds tolerance) {
    std::size_t count = 0;
    plan_queues([&](const Get&) { ++count; });
    if (answer.found.size() < count) return;
    auto next = answer.found.end() - static_cast<std::ptrdiff_t>(count);
    for (const Wanted& lock : wanted_) {
        Seen& seen = seen_.at(lock.name);
        if (lock.depth == 0 || !seen.is_queue_open) continue;
        const Found& queue = *next++;
        seen.waiting = queue.count;
        for (const KeyValue& one : queue.keys) {
            const auto ticket = unsealed_ticket(bytes_of(one.value), lock.name, moment.now, tolerance);
            if (ticket && ticket->value.expires_at <= moment.now && seen.waiting > 0) --seen.waiting;
        }
    }
}

std::vector<Get> BatchView::missing() const {
    std::vector<Get> gets;
    for (const auto& [name, seen] : seen_) {
        if (!seen.record) {
            // Read the record again as well: if the lock was created meanwhile, its events without its record would
            // look like damage.
            gets.push_back({.keys = {keys_.record(name)}});
            gets.push_back({.keys = keys_.events(name), .limit = 1, .without_values = true});
        }
        for (const std::string& key : seen.deep) gets.push_back({.keys = {key}});
    }
    for (const Wanted& lock : wanted_) {
        if (!lock.repairs) continue;
        gets.push_back({.keys = keys_.events(lock.name), .limit = 1, .last_first = true});
        gets.push_back({.keys = keys_.events(lock.name), .limit = 1});
    }
    return gets;
}

void BatchView::take_missing(std::vector<Found> found) {
    auto next = found.begin();
    const auto take_one = [&]() -> std::optional<KeyValue> {
        if (next == found.end()) return std::nullopt;
        Found& one = *next++;
        if (one.keys.empty()) return std::nullopt;
        return std::move(one.keys.front());
    };
    for (auto& [name, seen] : seen_) {
        if (!seen.record) {
            seen.record = take_one();
            seen.has_past = take_one().has_value();
        }
        for (const std::string& key : seen.deep)
            if (auto ticket = take_one()) seen.tickets.emplace(key, std::move(*ticket));
    }
    for (const Wanted& lock : wanted_) {
        if (!lock.repairs) continue;
        seen_.at(lock.name).newest = take_one();
        seen_.at(lock.name).oldest = take_one();
    }
}

void BatchView::tell(Batch& batch, const Moment& moment, std::chrono::milliseconds tolerance) {
    for (const Wanted& lock : wanted_) {
        const auto told = stores::tell(batch, lock, view_of(lock, moment, tolerance), [&]() -> Result<kernel::Damage> {
            const Traces traces = traces_of(lock.name);
            return damage_in(traces, lock.name, traces.record.has_value(), moment.now);
        });
        if (!told) batch.found(lock.name, std::unexpected(told.error()));
    }
}

Traces BatchView::traces_of(const LockName& name) const {
    constexpr std::size_t digits = 16;
    const auto copied = [](const KeyValue& one) { return base::Bytes(one.value.begin(), one.value.end()); };
    const Seen& seen = seen_.at(name);
    Traces traces;
    if (seen.record) traces.record = copied(*seen.record);
    for (const auto& [key, ticket] : seen.tickets) traces.tickets.push_back(copied(ticket));
    if (seen.oldest) traces.oldest = copied(*seen.oldest);
    if (!seen.newest) return traces;
    traces.newest = copied(*seen.newest);
    const std::string_view key = seen.newest->key;
    traces.seq = number_in(key.substr(key.size() - std::min(key.size(), digits))).value_or(0);
    return traces;
}

Result<LockView> BatchView::view_of(const Wanted& wanted, const Moment& moment, std::chrono::milliseconds tolerance) {
    Seen& seen = seen_.at(wanted.name);
    LockView view{.record = kernel::blank(wanted.name)};
    if (seen.record) {
        auto record = unsealed_record(bytes_of(seen.record->value), wanted.name, moment.now, tolerance);
        if (!record) return std::unexpected(record.error());
        view.record = std::move(record->value);
        view.moved = record->moved;
    } else if (seen.has_past) {
        // The lock had a record, which was removed. Its last token is not known, so no new token can be granted.
        return std::unexpected(unreadable(wanted.name, "the record"));
    }
    seen.first_end = first_end_of(view);
    view.waiters = seen.waiting;
    view.last_number = static_cast<std::uint64_t>(revision_) << numbers_per_revision_bits;
    for (const auto& [key, stored] : seen.tickets) {
        auto ticket = unsealed_ticket(bytes_of(stored.value), wanted.name, moment.now, tolerance);
        if (!ticket) return std::unexpected(ticket.error());
        if (keys_.ticket(wanted.name, ticket->value.number) != key)
            return std::unexpected(unreadable(wanted.name, "a place in the queue"));
        if (ticket->value.expires_at <= moment.now && view.waiters > 0) --view.waiters;
        seen.places.insert_or_assign(ticket->value.lock_id, ticket->value.number);
        if (ticket->moved) view.moved_tickets.push_back(ticket->value.lock_id);
        seen.first_end = std::min(seen.first_end, ticket->moved ? Instant::min() : ticket->value.expires_at);
        view.tickets.push_back(std::move(ticket->value));
    }
    return view;
}

bool BatchView::may_have_ended(const Moment& moment) const {
    return !moment.is_fresh && std::ranges::any_of(seen_, [&](const auto& one) {
        return one.second.first_end <= moment.now + moment.resolution;
    });
}

Revision BatchView::record_changed_in(const LockName& name) const {
    const auto& record = seen_.at(name).record;
    return record ? record->changed_in : 0;
}

std::optional<KeyValue> BatchView::ticket(const LockName& name, std::uint64_t number) const {
    const auto& tickets = seen_.at(name).tickets;
    const auto found = tickets.find(keys_.ticket(name, number));
    if (found == tickets.end()) return std::nullopt;
    return found->second;
}

Revision BatchView::ticket_changed_in(const LockName& name, std::uint64_t number) const {
    const auto found = ticket(name, number);
    return found ? found->changed_in : 0;
}

bool BatchView::is_deep(const LockName& name, std::uint64_t number) const {
    return std::ranges::find(seen_.at(name).deep, keys_.ticket(name, number)) != seen_.at(name).deep.end();
}

std::optional<std::uint64_t> BatchView::place_of(const LockName& name, const LockId& waiter) const {
    const auto& places = seen_.at(name).places;
    const auto found = places.find(waiter);
    if (found == places.end()) return std::nullopt;
    return found->second;
}

}  // namespace holdfast::stores::etcd
