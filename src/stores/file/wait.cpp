#include "stores/file/wait.hpp"

#include "kernel/rebase.hpp"
#include "stores/file/ticket_queue.hpp"

#include <algorithm>
#include <vector>

namespace holdfast::stores::file {

using std::chrono::milliseconds;

namespace {

/// How much later the queue is read again for each waiter ahead, while the lock is open and nobody takes it.
constexpr milliseconds patience_per_place{100};
/// Those ahead may all have been in a process that died.
constexpr milliseconds longest_patience{1000};

/// The longest sleep where no change can be heard: a lock that does not exist yet, or no descriptor left.
constexpr milliseconds nap{20};

/// A bell may be missing, and nobody rings when the whole store is gone.
constexpr milliseconds longest_without_look{1000};
constexpr milliseconds between_looks{250};

Sighting fires(Result<std::optional<HandedOn>> result) { return {.fired = std::move(result)}; }

}  // namespace

base::Standing QueueReading::standing_of(const LockId& ticket) const {
    const auto found = ahead_.find(ticket);
    if (found == ahead_.end()) return base::Standing::absent;
    return found->second == 0 ? base::Standing::first : base::Standing::behind;
}

bool QueueReading::may_be_first(const LockId& ticket, std::uint64_t seq, bool is_open) const {
    const auto found = ahead_.find(ticket);
    if (found == ahead_.end()) return true;
    // A holder that takes and releases the lock leaves two events. Fewer events mean that a waiter is still ahead, or
    // has left without the lock, or died; and then the lock is found open.
    if (seq != seq_ && seq - seq_ >= 2 * found->second) return true;
    const auto places = static_cast<milliseconds::rep>(found->second);
    return is_open && clock_->boottime() - read_at_ >= std::min(patience_per_place * places, longest_patience);
}

Result<void> QueueReading::read(const Folder& lock, const Bonds& bonds, std::uint64_t seq, Instant now) {
    auto queue = TicketQueue::load(lock, kernel::mark_of(*clock_), now);
    if (!queue) return std::unexpected(queue.error());
    queue->end_abandoned(bonds, std::nullopt);
    ahead_.clear();
    for (const LockId& ticket : queue->live()) ahead_.emplace(ticket, ahead_.size());
    seq_ = seq;
    read_at_ = clock_->boottime();
    return {};
}

/// One lock, as all watches of it see it in one look.
struct Source::View {
    Boottime seen_from{};
    std::optional<LockFolder> folder{};
    std::optional<SavedLock> saved{};
    Instant now{};
    std::uint64_t seq = 0;
    std::optional<Lease> lease{};  ///< Live or not.
    bool has_read_queue = false;
};

Result<Source::View> Source::view_of(const LockName& name) const {
    View view{.seen_from = clock_.boottime()};
    auto folder = find_lock_(name);
    if (!folder) return std::unexpected(folder.error());
    if (!*folder) return view;
    auto saved = (*folder)->load();
    if (!saved) return std::unexpected(saved.error());
    view.folder = std::move(*folder);
    view.saved = std::move(*saved);
    view.now = clock_.wall();
    if (!view.saved) return view;
    auto record = kernel::rebase(view.saved->record, view.saved->saved_under, kernel::mark_of(clock_), view.now);
    view.seq = record.seq;
    bonds_.end_abandoned(view.now, record);
    if (record.held) view.lease = record.held->lease;
    return view;
}

Source::Source(FindLock find_lock, const Bonds& bonds, const Clock& clock)
    : find_lock_(std::move(find_lock)), bonds_(bonds), clock_(clock), ticks_(between_looks), listener_(nap) {}

void Source::add(std::span<const HubWatch> watches) {
    std::map<LockName, Result<std::optional<LockFolder>>> folders;
    for (const HubWatch& watch : watches) {
        const LockName& name = watch.watch.name;
        listener_.add(watch);
        must_read_.insert(watch.id);
        WatchedLock& lock = locks_.try_emplace(name, clock_).first->second;
        ++lock.watches;
        if (!notified_as(watch.watch)) lock.without_ticket.insert(watch.id);
        auto folder = folders.find(name);
        if (folder == folders.end()) folder = folders.emplace(name, find_lock_(name)).first;
        listen_for(watch, folder->second);
    }
}

void Source::listen_for(const HubWatch& watch, const Result<std::optional<LockFolder>>& folder) {
    // The look that follows finds and reports the same error.
    if (!folder || !*folder) return;
    if (notified_as(watch.watch)) return listener_.hang(watch, bells_of((*folder)->folder()));
    WatchedLock& lock = locks_.at(watch.watch.name);
    if (lock.folder < 0) {
        const auto added = listener_.files().add((*folder)->folder().path());
        if (!added) return;
        lock.folder = *added;
        by_folder_.insert_or_assign(*added, watch.watch.name);
    }
    listener_.set_heard(watch.id);
}

void Source::remove(std::span<const HubWatch> watches) {
    for (const HubWatch& watch : watches) {
        must_read_.erase(watch.id);
        if (!listener_.remove(watch)) continue;
        const auto found = locks_.find(watch.watch.name);
        WatchedLock& lock = found->second;
        lock.without_ticket.erase(watch.id);
        if (lock.without_ticket.empty() && lock.folder >= 0) {
            listener_.files().remove(lock.folder);
            by_folder_.erase(lock.folder);
            lock.folder = -1;
        }
        if (--lock.watches == 0) locks_.erase(found);
    }
}

std::vector<Sighting> Source::look(std::span<const HubWatch> watches) {
    // Subscribe before reading, so that no change is missed.
    for (const HubWatch& watch : watches)
        if (listener_.is_unheard(watch)) listen_for(watch, find_lock_(watch.watch.name));
    std::map<LockName, Result<View>> views;
    std::vector<Sighting> seen;
    seen.reserve(watches.size());
    for (const HubWatch& watch : watches) {
        const LockName& name = watch.watch.name;
        auto view = views.find(name);
        if (view == views.end()) view = views.emplace(name, view_of(name)).first;
        seen.push_back(view->second ? look_at(watch, *view->second) : fires(std::unexpected(view->second.error())));
    }
    for (const HubWatch& watch : watches) must_read_.erase(watch.id);
    return seen;
}

Sighting Source::look_at(const HubWatch& watch, View& view) {
    const auto& ticket = watch.watch.ticket;
    if (watch.watch.lease)
        return is_lost(watch.watch, view.lease) ? fires(std::nullopt) : Sighting{.next_look = next_look_at_lease()};
    // A lock that was there is gone.
    if (!view.folder) return watch.watch.seen_seq != 0 ? fires(std::nullopt) : Sighting{};
    if (!ticket) return view.seq != watch.watch.seen_seq ? fires(std::nullopt) : Sighting{};
    const base::Doorbells bells = bells_of(view.folder->folder());
    if (view.lease && view.lease->lock_id == *ticket) {
        // The ticket is gone, and nobody else would remove a bell that was put up after it.
        bells.take_down(*ticket);
        auto status = status_of(view.folder->folder(), *view.saved, bonds_, clock_);
        if (!status) return fires(std::unexpected(status.error()));
        return fires(HandedOn::to(*ticket, std::move(*status), view.seen_from));
    }
    const auto sleep = sleep_in_line(watch, view);
    if (!sleep) return fires(std::unexpected(sleep.error()));
    if (*sleep) {
        hear_end_of_holder(watch, view);
        return {.next_look = **sleep};
    }
    if (locks_.at(watch.watch.name).queue.standing_of(*ticket) == base::Standing::absent) bells.take_down(*ticket);
    return fires(std::nullopt);
}

/// Only the first waiter can take the lock.
void Source::hear_end_of_holder(const HubWatch& watch, const View& view) {
    const base::Standing standing = locks_.at(watch.watch.name).queue.standing_of(*watch.watch.ticket);
    if (standing != base::Standing::first || !view.lease) return;
    if (const auto process = bonds_.process_of(view.lease->lock_id)) listener_.hear_end_of(watch, *process);
}

milliseconds Source::next_look_at_lease() const {
    return ticks_.aligned(clock_.boottime(), longest_without_look - between_looks);
}

Result<std::optional<milliseconds>> Source::sleep_in_line(const HubWatch& watch, View& view) {
    const LockId& ticket = *watch.watch.ticket;
    QueueReading& queue = locks_.at(watch.watch.name).queue;
    const bool is_open = !view.lease || view.lease->expires_at <= view.now;
    const bool reads = must_read_.contains(watch.id) || queue.may_be_first(ticket, view.seq, is_open);
    if (reads && !view.has_read_queue) {
        if (auto read = queue.read(view.folder->folder(), bonds_, view.seq, view.now); !read)
            return std::unexpected(read.error());
        view.has_read_queue = true;
    }
    return base::sleep_in_line(queue.standing_of(ticket), view.lease, view.now);
}

Heard Source::listen(milliseconds most) {
    const HostListener::News news = listener_.listen(most);
    Heard heard{.ids = news.due};
    heard.ids.insert(heard.ids.end(), news.rung.begin(), news.rung.end());
    must_read_.insert(news.rung.begin(), news.rung.end());
    take_in(news.files, heard);
    return heard;
}

void Source::take_in(const base::FileWatches::Touched& touched, Heard& heard) {
    if (touched.all) heard.all = true;
    std::vector<int> watches = touched.watches;
    std::ranges::sort(watches);
    const auto repeated = std::ranges::unique(watches);
    watches.erase(repeated.begin(), repeated.end());
    for (const int watch : watches) {
        const auto name = by_folder_.find(watch);
        if (name == by_folder_.end()) continue;
        WatchedLock& lock = locks_.at(name->second);
        heard.ids.insert(heard.ids.end(), lock.without_ticket.begin(), lock.without_ticket.end());
        if (std::ranges::find(touched.ended, watch) == touched.ended.end()) continue;
        for (const std::uint64_t id : lock.without_ticket) listener_.set_unheard(id);
        lock.folder = -1;
        by_folder_.erase(name);
    }
}

}  // namespace holdfast::stores::file
