#include "stores/postgres/optimistic.hpp"

#include "stores/common/sealed.hpp"
#include "stores/postgres/codec.hpp"
#include "stores/postgres/schema.hpp"

#include <algorithm>
#include <limits>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

/// No longer than a prediction of the clock holds.
constexpr milliseconds longest_row_wait{8};

/// Every ticket has a number below this.
constexpr std::int64_t no_number = std::numeric_limits<std::int64_t>::max();

/// The same lease before and after.
bool is_kept(const kernel::Record& before, const kernel::Record& after) {
    return before.held && after.held && before.held->lease.lock_id == after.held->lease.lock_id;
}

std::int64_t count(Instant instant) { return instant.time_since_epoch().count(); }

}  // namespace

std::optional<OptimisticBatch> OptimisticBatch::make(const Context& context, std::span<const Request> requests,
                                                     const base::CallBudget& budget) {
    // The first lock of a store also marks the store as used, so whether the mark is there must be read first.
    if (context.optimistic == nullptr || !context.store || !context.store->was_used ||
        !std::ranges::all_of(requests, is_predictable))
        return std::nullopt;
    const auto arrival = context.optimistic->clock.on_arrival();
    if (!arrival) return std::nullopt;
    Instant now = context.clock.judges().value_or(*arrival);

    Batch batch(requests);
    std::vector<KnownLock> before;
    for (const Wanted& wanted : batch.wanted()) {
        auto lock = context.optimistic->predict(wanted.name);
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
    OptimisticBatch made;
    made.replies_ = batch.run(now);
    if (!writes_every_record(made.replies_, batch) || budget.over()) return std::nullopt;
    made.changes_ = batch.changes();

    LockRows fresh;
    LockRows known;
    Array was(Type::bytes), was_token(Type::number), was_lock_id(Type::uuid);
    Array dropped_names(Type::bytes), dropped(Type::uuid), dropped_data(Type::bytes);
    bool drops = false;
    Array names(Type::bytes), below(Type::number), last_seq(Type::number);
    for (std::size_t i = 0; i < made.changes_.size(); ++i) {
        const kernel::Record& record = *made.changes_[i].record;
        const KnownLock& lock = before[i];
        const base::Bytes& data = made.data_.emplace_back(sealed(record, now));
        const bool is_new = lock.data.empty();
        (is_new ? fresh : known).add(record, data);
        if (!is_new) {
            was.add(base::ByteView(lock.data));
            was_token.add(lock.record.token.value);
            was_lock_id.add(lock.record.held ? std::optional(lock.record.held->lease.lock_id) : std::nullopt);
        }
        names.add(record.name.text());
        // A renewal does not depend on the queue. A grant and a release do: they have to know its head.
        std::optional<std::int64_t> limit = is_kept(lock.record, record) ? std::nullopt : std::optional(no_number);
        for (const kernel::Ticket& ticket : made.changes_[i].dropped) {
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
    made.trip_ = {Statement(statements.begin_change), enter(statements, budget, longest_row_wait)};
    // New rows first, as in a batch that reads first: batches that lock rows in different orders can deadlock.
    if (!fresh.empty()) fresh.bind_to(made.trip_.emplace_back(statements.put_new), now);
    if (!known.empty()) {
        Statement& put = made.trip_.emplace_back(statements.put_known);
        known.bind_to(put, now);
        put.bind(was).bind(was_token).bind(was_lock_id);
    }
    if (drops)
        made.trip_.push_back(Statement(statements.drop_known).bind(dropped_names).bind(dropped).bind(dropped_data));
    made.trip_.push_back(add_events(statements, made.changes_));
    add_wakes(made.trip_, statements, made.changes_);
    const Window window = ServerClock::window_for(now);
    Statement& confirm = made.trip_.emplace_back(statements.confirm);
    confirm.bind(judged(context.clock)).bind(count(window.earliest)).bind(count(window.latest));
    confirm.bind(names).bind(below).bind(last_seq);
    confirm.bind(LockId(context.store->store_id.bytes())).bind(our_format);
    made.trip_.emplace_back(statements.commit);
    return made;
}

Result<Applied> OptimisticBatch::read(const Context& context, std::span<const Request> requests, const Trip& trip) {
    const auto identity = read_identity(trip.answers[1]);
    if (!identity) return std::unexpected(identity.error());
    const Rows& confirmed = trip.answers[trip.answers.size() - 2];
    std::unordered_map<std::string_view, std::uint64_t> waiters;
    for (int row = 0; row < confirmed.count(); ++row)
        waiters[confirmed.text(row, 0)] = static_cast<std::uint64_t>(confirmed.number(row, 1));
    for (std::size_t i = 0; i < requests.size(); ++i) replies_[i]->lock.waiters = waiters[name_of(requests[i]).text()];
    for (std::size_t i = 0; i < changes_.size(); ++i) {
        // After a hand-over another client changes the lock next, and with waiters a release has to know the queue:
        // neither can be predicted.
        if (waiters[changes_[i].name.text()] == 0 && !changes_[i].next)
            context.optimistic->remember({*changes_[i].record, std::move(data_[i])});
        else
            context.optimistic->mark_contended(changes_[i].name);
    }
    return Applied{std::move(replies_), *identity};
}

InDoubt OptimisticBatch::in_doubt(Error error) const {
    const kernel::Record& record = *changes_.front().record;
    return {record.name, record.seq, record.chain, replies_, std::move(error)};
}

void OptimisticBatch::mispredicted(const Context& context) const {
    for (const Change& change : changes_) context.optimistic->mark_contended(change.name);
}

void learn(Optimistic& optimistic, std::span<const Wanted> wanted, std::span<const Change> changes,
           std::span<const base::Bytes> data) {
    std::size_t at = 0;
    for (const Wanted& lock : wanted) {
        const Change* const change = at < changes.size() && changes[at].name == lock.name ? &changes[at] : nullptr;
        if (change != nullptr && change->record && !change->next)
            optimistic.remember({*change->record, data[at]});
        else
            optimistic.mark_contended(lock.name);
        if (change != nullptr) ++at;
    }
}

}  // namespace holdfast::stores::postgres
