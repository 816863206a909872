#include "stores/file/apply.hpp"

#include "kernel/rebase.hpp"
#include "kernel/refusal.hpp"
#include "stores/file/audit_log.hpp"
#include "stores/file/damage.hpp"
#include "stores/file/name_encoding.hpp"

#include <algorithm>
#include <cstdlib>

namespace holdfast::stores::file {
namespace {

constexpr std::size_t most_requests = 256;
/// More locks than one request can name; see the kernel's limits.
constexpr std::size_t most_locks = 32;

}  // namespace

std::size_t section_size(std::span<const Request> requests) {
    std::set<LockName> names;
    std::size_t count = 0;
    for (const Request& request : requests.first(std::min(requests.size(), most_requests))) {
        if (!kernel::beyond_limits(request)) {
            names.insert(name_of(request));
            names.insert(kernel::others_of(request).begin(), kernel::others_of(request).end());
        }
        if (names.size() > most_locks && count > 0) break;
        ++count;
    }
    return count;
}

Section::Lock::Lock(LockName lock_name)
    : name(std::move(lock_name)), saved{kernel::blank(name), {}, 0, {}}, record(saved.record) {}

Section::Section(const Folder& locks, Bonds& bonds, std::span<const Request> requests, const Clock& clock,
                 Deadline deadline)
    : locks_(locks), bonds_(bonds), clock_(clock) {
    // Only an Acquire can change a lock that was never used, so other requests make no folder for a misspelt name.
    std::set<LockName> wanted;
    for (const Request& request : requests) {
        if (kernel::beyond_limits(request)) continue;
        std::vector<LockName> names = kernel::others_of(request);
        names.push_back(name_of(request));
        for (const LockName& name : names) guarded_.try_emplace(folder_name(name), name);
        if (std::holds_alternative<Acquire>(request)) wanted.insert(names.begin(), names.end());
    }
    for (auto& [folder, lock] : guarded_) {
        if (wanted.contains(lock.name)) {
            auto made = LockFolder::make(locks_, folder);
            if (made)
                lock.folder.emplace(std::move(*made));
            else
                lock.broken = made.error();
        } else {
            auto found = LockFolder::find(locks_, folder);
            if (!found)
                lock.broken = found.error();
            else if (*found)
                lock.folder.emplace(std::move(**found));
        }
        if (lock.folder) load(lock, deadline);
    }
    // Read when everything is guarded, so that time that passed while waiting for a guard counts.
    mark_ = kernel::mark_of(clock_);
    now_ = clock_.wall();
    for (auto& [folder, lock] : guarded_) {
        const kernel::ClockMark& then = lock.saved.saved_under;
        lock.record = kernel::rebase(lock.saved.record, then, mark_, now_);
        // The first change after a reboot saves how much of the lease is left. Otherwise a wall clock that lost the
        // date would grant it one more ttl at every look.
        lock.changed = lock.record.held && then.boot_id != mark_.boot_id;
    }
}

void Section::load(Lock& lock, Deadline deadline) {
    auto guard = lock.folder->take_guard(clock_, deadline);
    if (!guard) {
        lock.broken = guard.error();
        return;
    }
    lock.guard.emplace(std::move(*guard));
    auto saved = lock.folder->load();
    if (!saved)
        lock.broken = saved.error();
    else if (*saved)
        lock.saved = std::move(**saved);
}

Result<Reply> Section::decide(const Request& request) {
    if (auto error = kernel::beyond_limits(request)) return Reply(std::unexpected(std::move(*error)));
    // What a step reads of other locks must be durable before the step is: after a crash in between, a lock
    // could be granted because of a release that never happened.
    if (!kernel::others_of(request).empty())
        if (auto saved = save(); !saved) return std::unexpected(saved.error());
    Lock& lock = guarded_.at(folder_name(name_of(request)));
    const auto state = state_of(request, lock);
    const bool is_damaged = !state && state.error().code == Errc::record_corrupt && lock.guard;
    if (is_damaged && std::holds_alternative<Repair>(request)) return repair(request, lock);
    if (!state) return Reply(std::unexpected(state.error()));
    kernel::Decision decision = kernel::step(*state, request, now_);
    if (auto possible = expect_prunable(lock, decision); !possible) return Reply(std::unexpected(possible.error()));
    if (auto bound = bonds_.bind_session(request, decision); !bound) return Reply(std::unexpected(bound.error()));
    take_over(lock, decision);
    return std::move(decision.reply);
}

Result<Reply> Section::repair(const Request& request, Lock& lock) {
    const Folder& folder = lock.folder->folder();
    DamagedLock found{.damage = {.what = "the queue", .record = lock.record}, .saved = lock.saved};
    if (lock.broken) {
        auto looked = look_at_damage(folder, lock.name);
        if (!looked) return Reply(std::unexpected(looked.error()));
        found = std::move(*looked);
        // Before the record is replaced.
        if (auto kept = keep_damaged(folder, found.damage, now_); !kept) return Reply(std::unexpected(kept.error()));
    }
    auto queue = TicketQueue::to_clear(folder, mark_, now_);
    if (!queue) return Reply(std::unexpected(queue.error()));
    const kernel::State state{kernel::blank(lock.name), {}, {}, std::move(found.damage)};
    kernel::Decision decision = kernel::step(state, request, now_);
    if (!decision.record) return std::move(decision.reply);
    lock.broken.reset();
    lock.saved = std::move(found.saved);
    lock.queue.emplace(std::move(*queue));
    take_over(lock, decision);
    return std::move(decision.reply);
}

Result<kernel::State> Section::state_of(const Request& request, Lock& lock) {
    if (lock.broken) return std::unexpected(*lock.broken);
    if (auto loaded = load_queue(lock); !loaded) return std::unexpected(loaded.error());
    kernel::State state{lock.record, {}, {}};
    bonds_.end_abandoned(request, now_, state.record);
    if (lock.queue) {
        const auto own = kernel::ticket_of(request);
        lock.queue->end_abandoned(bonds_, own);
        auto queue = lock.queue->view(own);
        if (!queue) return std::unexpected(queue.error());
        state.queue = std::move(*queue);
    }
    for (const LockName& name : kernel::others_of(request)) {
        const Lock& other = guarded_.at(folder_name(name));
        if (other.broken) return std::unexpected(*other.broken);
        state.others.push_back(other.record);
    }
    return state;
}

/// Checked before anything is written, so that a damaged log fails its own request and not the whole batch.
Result<void> Section::expect_prunable(const Lock& lock, const kernel::Decision& decision) {
    if (!decision.record || decision.record->pruned_seq == lock.record.pruned_seq) return {};
    return can_prune(lock.folder->folder(), lock.saved, decision.record->pruned_seq);
}

Result<void> Section::load_queue(Lock& lock) {
    if (lock.queue || !lock.folder) return {};
    auto queue = TicketQueue::load(lock.folder->folder(), mark_, now_);
    if (!queue) return std::unexpected(queue.error());
    lock.queue.emplace(std::move(*queue));
    return {};
}

void Section::take_over(Lock& lock, kernel::Decision& decision) {
    const bool changes = decision.record || decision.put_ticket || decision.drop_ticket;
    if (!changes) return;
    // The kernel changes a lock without a record for an Acquire only, and the Acquire has made its folder.
    if (!lock.folder || !lock.queue) std::abort();
    if (decision.record) {
        lock.record = std::move(*decision.record);
        lock.changed = true;
        std::ranges::move(decision.events, std::back_inserter(lock.events));
    }
    if (decision.drop_ticket) lock.queue->drop(*decision.drop_ticket);
    if (decision.handed_to) lock.handed_to = decision.handed_to;
    if (!lock.lost_lease) lock.lost_lease = decision.lost_lease;
    if (decision.put_ticket) lock.queue->put(*decision.put_ticket);
}

Result<void> Section::save() {
    for (auto& [folder, lock] : guarded_)
        if (auto saved = save(lock); !saved) return saved;
    return {};
}

Result<void> Section::save_record(Lock& lock) {
    if (!lock.changed) return {};
    auto saved = lock.folder->save(lock.saved, lock.record, lock.events, mark_, locks_);
    if (!saved) return std::unexpected(saved.error());
    if (const auto ended = Bonds::ended_between(lock.saved.record, saved->record)) bonds_.forget_lease(*ended);
    lock.saved = std::move(*saved);
    lock.events.clear();
    lock.changed = false;
    has_written_ = true;
    // Ring now, because the bell is removed with the ticket. The waiter needs no guard to see that it has the lock.
    const base::Doorbells bells = bells_of(lock.folder->folder());
    if (lock.handed_to) bells.ring(*lock.handed_to);
    lock.handed_to.reset();
    if (lock.lost_lease) {
        bells.ring(*lock.lost_lease);
        bells.take_down(*lock.lost_lease);
    }
    lock.lost_lease.reset();
    return {};
}

Result<void> Section::save(Lock& lock) {
    if (lock.broken || !lock.folder) return {};
    const bool changed = lock.changed;
    if (auto saved = save_record(lock); !saved) return saved;
    if (!lock.queue) return {};
    // After the record: a ticket that outlives its grant runs out, a grant without a record would be a lie.
    const auto queue_saved = lock.queue->save(lock.folder->folder(), bonds_);
    has_written_ = has_written_ || lock.queue->has_written();
    if (!queue_saved) return queue_saved;
    const bool is_live = lock.record.held && lock.record.held->lease.expires_at > now_;
    if (!is_live && (changed || lock.queue->has_removed()))
        if (const auto first = lock.queue->first_alive(bonds_))
            calls_.push_back({bells_of(lock.folder->folder()), *first});
    return {};
}

}  // namespace holdfast::stores::file
