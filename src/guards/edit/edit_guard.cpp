#include "guards/edit/transaction.hpp"
#include "holdfast/edit.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast {
namespace {

Result<LockStatus> lock_of(Reply reply) {
    if (!reply) return std::unexpected(std::move(reply.error()));
    return std::move(reply->lock);
}

Result<EditGrant> grant_of(const Credentials& as, Reply reply) {
    if (!reply) return std::unexpected(std::move(reply.error()));
    return EditGrant{as, std::move(reply->lock), std::move(reply->stolen_from)};
}

Result<Acquire> acquire_of(const ProjectLocks& locks, const Credentials& as, const Screen& screen,
                           const std::string& reason, const EditTimes& times) {
    const auto ttl = Ttl::of(times.edit);
    if (!ttl) return std::unexpected(ttl.error());
    Acquire request{.name = locks.edit, .as = as, .holder = screen.holder(), .ttl = *ttl};
    request.operation = "edit";
    request.reason = reason;
    request.max_hold = times.longest_edit;
    request.unless_held = {locks.propagation};
    return request;
}

}  // namespace

Result<EditGrant> EditGuard::open(const ProjectLocks& locks, const Credentials& as, const Screen& screen,
                                  const std::string& reason, Deadline deadline) {
    const auto request = acquire_of(locks, as, screen, reason, times_);
    if (!request) return std::unexpected(request.error());
    return grant_of(as, store_.apply_one(*request, deadline));
}

Result<LockStatus> EditGuard::renew(const ProjectLocks& locks, const Credentials& as, Deadline deadline) {
    const auto ttl = Ttl::of(times_.edit);
    if (!ttl) return std::unexpected(ttl.error());
    return lock_of(store_.apply_one(Renew{locks.edit, as, *ttl}, deadline));
}

Result<EditGrant> EditGuard::switch_to(const ProjectLocks& locks, const Credentials& as, const Credentials& next,
                                       const Screen& screen, Deadline deadline) {
    return grant_of(next, store_.apply_one(Transfer{locks.edit, as, screen.holder(), next, "switch"}, deadline));
}

Result<void> EditGuard::close(const ProjectLocks& locks, const Credentials& as, Deadline deadline) {
    const auto released = store_.apply_one(Release{locks.edit, as}, deadline);
    if (!released) return std::unexpected(released.error());
    return {};
}

bool EditGuard::is_stale(const LockStatus& lock) const {
    return lock.lease && lock.as_of - lock.lease->renewed_at >= times_.stale_after;
}

Result<EditGrant> EditGuard::take_over(const ProjectLocks& locks, const LockStatus& seen, const Credentials& as,
                                       const Screen& screen, const std::string& reason, Deadline deadline) {
    auto request = acquire_of(locks, as, screen, reason, times_);
    if (!request) return std::unexpected(request.error());
    if (seen.lease) request->takes_over = {seen.lease->lock_id, seen.lease->renew_seq, times_.stale_after};
    return grant_of(as, store_.apply_one(*request, deadline));
}

Result<LockStatus> EditGuard::ask(const ProjectLocks& locks, const Credentials& as, const Screen& screen,
                                  const std::string& reason, Ttl valid_for, Deadline deadline) {
    const auto ttl = Ttl::of(times_.edit);
    if (!ttl) return std::unexpected(ttl.error());
    return lock_of(store_.apply_one(Ask{locks.edit, as, screen.holder(), reason, *ttl, valid_for}, deadline));
}

Result<LockStatus> EditGuard::answer(const ProjectLocks& locks, const LockId& ask_id, Verdict verdict,
                                     const std::string& actor, const std::optional<Credentials>& by,
                                     Deadline deadline) {
    Answer request{.name = locks.edit, .ask_id = ask_id, .verdict = verdict, .actor = actor, .by = by};
    request.longest_ttl = times_.edit;
    request.max_hold = times_.longest_edit;
    return lock_of(store_.apply_one(request, deadline));
}

Result<FencedDatabase> EditGuard::seal(const ProjectLocks& locks, FencingToken token, const LockId& lock_id,
                                       std::string_view url, Deadline deadline) {
    const auto current = store_.apply_one(Check{locks.edit, token, lock_id, {}}, deadline);
    if (!current) return std::unexpected(current.error());
    const auto store_id = store_.store_id();
    if (!store_id) return fail(Errc::config, "the store of the locks has no store_id");
    FenceOptions options;
    options.store = &store_;
    options.clock = &store_.clock();
    return FencedDatabase::seal(url, {locks.edit, *store_id, token, lock_id}, std::move(options));
}

Result<void> EditGuard::save(FencedDatabase& database, const ProjectLocks& locks, const EditWrite& write,
                             Deadline deadline) {
    return guards::edit::write_in_transaction(store_, database, {locks.propagation}, write, deadline);
}

Result<std::vector<ProjectLease>> EditGuard::audit(const ProjectLocks& locks, Deadline deadline) {
    std::vector<ProjectLease> all;
    for (const auto& [name, type] :
         {std::pair(locks.edit, ProjectLockType::project), std::pair(locks.propagation, ProjectLockType::propagation),
          std::pair(locks.validation, ProjectLockType::validation)}) {
        const auto lock = store_.inspect(name, deadline);
        if (!lock) return std::unexpected(lock.error());
        const auto events = store_.history({.name = name}, deadline);
        if (!events) return std::unexpected(events.error());
        std::ranges::move(leases_in(*events, type, *lock), std::back_inserter(all));
    }
    std::ranges::stable_sort(all, std::ranges::greater{}, &ProjectLease::acquired_at);
    return all;
}

}  // namespace holdfast
