// A propagation and the saves of its project take turns: the lock keeps new saves out, and the first transaction waits
// for those that had begun.
#include "guards/edit/transaction.hpp"
#include "holdfast/edit.hpp"
#include "sql/session.hpp"

#include <string>

namespace holdfast {
namespace {

/// A save keeps the row of the edit lock share-locked from its check to its commit. In SQLite every transaction that
/// writes waits for the one before.
Result<void> wait_for_saves(FencedDatabase& database, const LockName& edit, SqlDialect dialect, Deadline deadline) {
    const std::string lock = dialect == SqlDialect::sqlite ? "" : " FOR UPDATE";
    if (auto begun = database.begin(deadline); !begun) return begun;
    const auto locked =
        database.run("SELECT token FROM holdfast_fence WHERE resource = $1" + lock, {edit.text()}, deadline);
    database.rollback();
    if (!locked) return std::unexpected(locked.error());
    return {};
}

Deadline end_of(const Hold& hold) { return Deadline{hold.deadline()}; }

HoldOptions once(const Holder& holder, std::string operation, std::chrono::milliseconds time) {
    HoldOptions options;
    options.holder = holder;
    options.operation = std::move(operation);
    options.renew = false;
    options.max_hold = time;
    return options;
}

}  // namespace

std::optional<Error> Propagation::loss() {
    if (auto told = hold().loss()) return told;
    if (store_->clock().boottime() < hold().deadline()) return std::nullopt;
    return hold().reason_of_expiry();
}

Result<void> Propagation::step(const EditWrite& write) {
    if (auto lost = loss()) return std::unexpected(std::move(*lost));
    return guards::edit::write_in_transaction(*store_, held_.database(), {}, write, end_of(hold()));
}

Result<void> Propagation::finish() {
    auto lost = loss();
    auto released = hold().release();
    if (lost) return std::unexpected(std::move(*lost));
    return released;
}

Result<Propagation> EditGuard::propagate(const ProjectLocks& locks, const Holder& job, std::string_view url) {
    const auto ttl = Ttl::of(std::min(times_.propagation, EditTimes::longest_propagation));
    if (!ttl) return std::unexpected(ttl.error());
    HoldOptions options = once(job, "propagation", ttl->time());
    options.ttl = *ttl;
    auto held = hold_fenced(store_, locks.propagation, url, options);
    if (!held) return std::unexpected(held.error());
    if (auto waited = wait_for_saves(held->database(), locks.edit, sql::dialect_of(url), end_of(held->hold())); !waited)
        return std::unexpected(waited.error());
    return Propagation(store_, std::move(*held));
}

Result<Hold> EditGuard::validate(const ProjectLocks& locks, const Holder& worker) {
    const auto ttl = Ttl::of(std::min(times_.validation, EditTimes::longest_validation));
    if (!ttl) return std::unexpected(ttl.error());
    HoldOptions options = once(worker, "validation", ttl->time());
    options.ttl = *ttl;
    return hold(store_, locks.validation, options);
}

}  // namespace holdfast
