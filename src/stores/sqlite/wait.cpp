#include "stores/sqlite/wait.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace holdfast::stores::sqlite {

using std::chrono::milliseconds;

namespace {

/// The longest sleep where no change can be heard: a store that does not exist yet, or no descriptor left.
constexpr milliseconds nap{50};

/// A bell may be missing, and nobody rings when the whole store is gone.
constexpr milliseconds longest_without_look{1000};
constexpr milliseconds between_looks{250};

/// So many watches are looked at before other threads may use the store.
constexpr std::size_t most_at_once = 256;

Sighting fires(Result<std::optional<HandedOn>> result) { return {.fired = std::move(result)}; }

}  // namespace

/// One lock, as all watches with a ticket see it in one look.
struct Source::View {
    Moment moment;
    Boottime seen_from{};
    std::optional<kernel::Record> record{};
    std::optional<LockId> first{};
    bool has_first = false;

    [[nodiscard]] std::optional<Lease> lease() const {
        return record->held ? std::optional(record->held->lease) : std::nullopt;
    }
};

Source::Source(const Place& place, WithStore with_store, const Bonds& bonds, const Clock& clock)
    : gate_path_(place.gate()),
      bells_(place.bells()),
      with_store_(std::move(with_store)),
      bonds_(bonds),
      clock_(clock),
      ticks_(between_looks),
      listener_(nap) {}

void Source::add(std::span<const HubWatch> watches) {
    for (const HubWatch& watch : watches) {
        listener_.add(watch);
        if (!notified_as(watch.watch)) without_ticket_.insert(watch.id);
        listen_for(watch);
    }
}

void Source::listen_for(const HubWatch& watch) {
    if (notified_as(watch.watch)) return listener_.hang(watch, bells_);
    if (gate_ < 0) gate_ = listener_.files().add(gate_path_, base::FileWatches::Hears::changes_and_reads).value_or(-1);
    if (gate_ >= 0) listener_.set_heard(watch.id);
}

void Source::remove(std::span<const HubWatch> watches) {
    for (const HubWatch& watch : watches) {
        listener_.remove(watch);
        queued_until_.erase(watch.id);
        without_ticket_.erase(watch.id);
    }
    if (!without_ticket_.empty() || gate_ < 0) return;
    listener_.files().remove(gate_);
    gate_ = -1;
}

std::vector<Sighting> Source::look(std::span<const HubWatch> watches) {
    // Subscribe before reading, so that no change is missed.
    for (const HubWatch& watch : watches)
        if (listener_.is_unheard(watch)) listen_for(watch);
    std::vector<Sighting> seen;
    seen.reserve(watches.size());
    while (!watches.empty()) {
        const auto some = watches.first(std::min(watches.size(), most_at_once));
        watches = watches.subspan(some.size());
        look_at_some(some, seen);
    }
    return seen;
}

void Source::look_at_some(std::span<const HubWatch> watches, std::vector<Sighting>& seen) {
    with_store_([&](Result<CheckedStore*> store) {
        // Before the snapshot: what it shows is true from then on.
        const Boottime seen_from = clock_.boottime();
        const Moment moment = Moment::of(clock_);
        std::optional<Result<Transaction>> snapshot;
        if (store && *store != nullptr) snapshot.emplace(Transaction::snapshot((*store)->database()));
        if (snapshot && !*snapshot) store = std::unexpected(snapshot->error());
        std::map<LockName, View> views;
        for (const HubWatch& watch : watches) {
            View& view = views.try_emplace(watch.watch.name, View{moment, seen_from}).first->second;
            Result<Sighting> sighting =
                store ? look_at(watch, *store, view) : Result<Sighting>(std::unexpected(store.error()));
            seen.push_back(sighting ? std::move(*sighting) : fires(std::unexpected(sighting.error())));
        }
    });
}

Result<Sighting> Source::look_at(const HubWatch& watch, CheckedStore* store, View& view) {
    if (watch.watch.lease) {
        if (store != nullptr)
            if (auto read = read_record(watch.watch.name, *store, view); !read) return std::unexpected(read.error());
        const bool lost = store == nullptr || is_lost(watch.watch, view.lease());
        return lost ? fires(std::nullopt) : Sighting{.next_look = next_look_at_lease()};
    }
    if (watch.watch.ticket) {
        if (store != nullptr) return look_in_line(watch, *store, view);
        bells_.take_down(*watch.watch.ticket);
        return fires(std::nullopt);
    }
    const auto seq = store == nullptr ? Result<std::uint64_t>(0) : store->tables().seq(watch.watch.name);
    if (!seq) return std::unexpected(seq.error());
    return *seq != watch.watch.seen_seq ? fires(std::nullopt) : Sighting{};
}

Result<void> Source::read_record(const LockName& name, CheckedStore& store, View& view) const {
    if (view.record) return {};
    auto found = store.tables().record(name, view.moment);
    if (!found) return std::unexpected(found.error());
    bonds_.end_abandoned(view.moment.now, found->record);
    view.record = std::move(found->record);
    return {};
}

milliseconds Source::next_look_at_lease() const {
    return ticks_.aligned(clock_.boottime(), longest_without_look - between_looks);
}

Result<Sighting> Source::look_in_line(const HubWatch& watch, CheckedStore& store, View& view) {
    const LockName& name = watch.watch.name;
    const LockId& ticket = *watch.watch.ticket;
    if (auto read = read_record(name, store, view); !read) return std::unexpected(read.error());
    const auto lease = view.lease();
    if (lease && lease->lock_id == ticket) {
        // The ticket is gone, and nobody else would remove a bell that was put up after it.
        bells_.take_down(ticket);
        const auto queue = store.tables().queue(name, std::nullopt, view.moment);
        if (!queue) return std::unexpected(queue.error());
        auto status = kernel::status_of(*view.record, queue->queue.waiters, view.moment.now);
        return fires(HandedOn::to(ticket, std::move(status), view.seen_from));
    }
    if (!view.has_first) {
        const auto first = store.tables().first_in_line(name, view.moment);
        if (!first) return std::unexpected(first.error());
        view.first = *first;
        view.has_first = true;
    }
    const auto standing = standing_of(watch, store, view);
    if (!standing) return std::unexpected(standing.error());
    if (const auto sleep = base::sleep_in_line(*standing, lease, view.moment.now)) {
        // Only the first waiter can take the lock of a dead holder.
        const auto process =
            *standing == base::Standing::first && lease ? bonds_.process_of(lease->lock_id) : std::nullopt;
        if (process) listener_.hear_end_of(watch, *process);
        return Sighting{.next_look = *sleep};
    }
    if (*standing == base::Standing::absent) bells_.take_down(ticket);
    return fires(std::nullopt);
}

Result<base::Standing> Source::standing_of(const HubWatch& watch, CheckedStore& store, const View& view) {
    if (view.first == watch.watch.ticket) return base::Standing::first;
    const auto known = queued_until_.find(watch.id);
    if (known != queued_until_.end() && view.seen_from < known->second) return base::Standing::behind;
    const auto ends = store.tables().end_of_ticket(watch.watch.name, *watch.watch.ticket, view.moment);
    if (!ends) return std::unexpected(ends.error());
    if (!*ends || **ends <= view.moment.now) return base::Standing::absent;
    queued_until_.insert_or_assign(watch.id, view.seen_from + (**ends - view.moment.now));
    return base::Standing::behind;
}

Heard Source::listen(milliseconds most) {
    const HostListener::News news = listener_.listen(most);
    Heard heard{.ids = news.due};
    for (const std::uint64_t id : news.rung) {
        heard.ids.push_back(id);
        queued_until_.erase(id);
    }
    if (news.files.all || !news.files.watches.empty())
        heard.ids.insert(heard.ids.end(), without_ticket_.begin(), without_ticket_.end());
    if (gate_ >= 0 && std::ranges::find(news.files.ended, gate_) != news.files.ended.end()) {
        gate_ = -1;
        for (const std::uint64_t id : without_ticket_) listener_.set_unheard(id);
    }
    return heard;
}

}  // namespace holdfast::stores::sqlite
