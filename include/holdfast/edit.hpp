#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/fence.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The edit guard: one screen edits a project at a time, and a save by any other is refused in the database.
///
/// A project has three locks. The edit lock is held by the screen that edits, and renewed while its user is active; the
/// propagation lock by a job that spreads a change, during which nobody begins to edit and nobody saves; the validation
/// lock by the worker that takes from the project's queue. `docs/reference/edit-locks.md` tells the whole of it.
///
/// The guard sends requests to a store and keeps nothing itself. Browsers may hold their leases through a daemon with
/// the same terms as policies; the server that saves then needs `seal`, `save` and `propagate` alone.
namespace [[gnu::visibility("default")]] holdfast {

/// How long the locks of a project live.
struct EditTimes {
    std::chrono::milliseconds edit{std::chrono::minutes{30}};
    std::chrono::milliseconds longest_edit{std::chrono::hours{2}};
    std::chrono::milliseconds renew_every{std::chrono::minutes{5}};  ///< While the user is active.
    /// An edit lease that was not renewed for so long may be taken over without asking.
    std::chrono::milliseconds stale_after{std::chrono::minutes{10}};
    std::chrono::milliseconds propagation{std::chrono::seconds{60}};  ///< At most 5 minutes. Not renewed.
    std::chrono::milliseconds validation{std::chrono::seconds{10}};   ///< At most 30 seconds. Not renewed.

    static constexpr std::chrono::milliseconds longest_propagation{std::chrono::minutes{5}};
    static constexpr std::chrono::milliseconds longest_validation{std::chrono::seconds{30}};
};

/// The names of a project's locks: `project/42/edit`, `project/42/propagation`, `project/42/validation`.
struct ProjectLocks {
    LockName edit;
    LockName propagation;
    LockName validation;

    /// Refused with `name_invalid` if the project's name is empty or contains a `/`, with which it could name the lock
    /// of another project.
    [[nodiscard]] static Result<ProjectLocks> of(std::string_view project);
};

/// What edits: one tab with one dashboard. Two tabs with the same dashboard are two screens.
struct Screen {
    std::string dashboard{};
    std::string id{};    ///< Of the tab. Without `#`.
    std::string user{};  ///< May be empty.

    /// `architecture#3f9c`, and the user.
    [[nodiscard]] Holder holder() const;
    [[nodiscard]] static Screen of(const Holder& holder);

    [[nodiscard]] bool operator==(const Screen&) const = default;
};

/// The lease of the screen that edits.
struct EditGrant {
    Credentials as;   ///< Secret.
    LockStatus lock;  ///< Its lease has the token.
    std::optional<StolenFrom> stolen_from{};
};

enum class ProjectLockType { project, propagation, validation };
[[nodiscard]] std::string_view name_of(ProjectLockType type);

/// A line of the audit view: one lease of a project's lock.
struct ProjectLease {
    ProjectLockType type = ProjectLockType::project;
    LockId lock_id{};
    FencingToken token{};
    std::string dashboard{};  ///< Of a propagation or validation: who holds it, a job or a worker.
    std::string user{};
    Instant acquired_at{};
    std::optional<Instant> released_at{};  ///< However it ended; absent while it lives.
    /// As of its last renewal. Of a lease that was ended early, its longest hold is not known any more, and not
    /// counted.
    Instant expires_at{};
    /// `released`, `expired`, `stolen` (taken over as stale), `broken` or `transferred` (also by an approved override);
    /// empty while it lives.
    std::string ended_by{};

    [[nodiscard]] bool operator==(const ProjectLease&) const = default;
};

/// The leases that `events` of one lock tell of, newest first. `lock`, seen before the events were read, says until
/// when the last one lives, and whether it has run out without anybody having told.
[[nodiscard]] std::vector<ProjectLease> leases_in(const std::vector<AuditEvent>& events, ProjectLockType type,
                                                  const LockStatus& lock);

/// What a transaction writes. An error rolls it back.
using EditWrite = std::function<Result<void>(FencedDatabase& database)>;

/// A propagation that runs: it holds its lock and has sealed the database. For one thread at a time.
class Propagation {
public:
    /// Writes one step in a transaction of its own. Refused with `lock_expired` and the like when the lock is not held
    /// any more, which is asked in that transaction: then saves may have come between, and the steps must end.
    [[nodiscard]] Result<void> step(const EditWrite& write);
    [[nodiscard]] Hold& hold() { return held_.hold(); }
    /// Gives the lock back. After a loss it is the loss: the propagation ended with an error.
    [[nodiscard]] Result<void> finish();

private:
    friend class EditGuard;
    [[nodiscard]] std::optional<Error> loss();
    Propagation(Store& store, FencedHold held) : store_(&store), held_(std::move(held)) {}

    Store* store_;
    FencedHold held_;
};

/// Threads: may be used from any. `store` must outlive the guard. Every call ends with an error of the store as
/// `Store::apply_one` does; after `outcome_unknown` the same call with the same credentials may be repeated.
class EditGuard {
public:
    explicit EditGuard(Store& store, const EditTimes& times = {}) : store_(store), times_(times) {}

    [[nodiscard]] const EditTimes& times() const { return times_; }

    /// Makes `screen` the one that edits. `as` is chosen before, so that the call can be repeated. Refused with
    /// `lock_conflict` and the lock that is in the way: another screen edits, or a propagation runs.
    [[nodiscard]] Result<EditGrant> open(const ProjectLocks& locks, const Credentials& as, const Screen& screen,
                                         const std::string& reason, Deadline deadline);
    /// While the user is active. Never beyond `longest_edit`.
    [[nodiscard]] Result<LockStatus> renew(const ProjectLocks& locks, const Credentials& as, Deadline deadline);
    /// The project stays locked without a gap, and what `as` had sealed is refused from the next `seal` on.
    [[nodiscard]] Result<EditGrant> switch_to(const ProjectLocks& locks, const Credentials& as, const Credentials& next,
                                              const Screen& screen, Deadline deadline);
    /// Granted also when it was closed before.
    [[nodiscard]] Result<void> close(const ProjectLocks& locks, const Credentials& as, Deadline deadline);

    /// True if the lease that `lock` shows may be taken over without asking.
    [[nodiscard]] bool is_stale(const LockStatus& lock) const;
    /// Takes the lock from the lease in `seen`, if it is stale and nobody has renewed it since: one step of the store,
    /// so it cannot meet a renewal. Refused with `lock_conflict` otherwise; then ask.
    [[nodiscard]] Result<EditGrant> take_over(const ProjectLocks& locks, const LockStatus& seen, const Credentials& as,
                                              const Screen& screen, const std::string& reason, Deadline deadline);
    /// Asks the screen that edits, or an operator, for the lock. `as` is the lease once that is approved.
    [[nodiscard]] Result<LockStatus> ask(const ProjectLocks& locks, const Credentials& as, const Screen& screen,
                                         const std::string& reason, Ttl valid_for, Deadline deadline);
    /// Answers `ask_id`. `by` are the credentials of the screen that edits; absent: `actor` is an operator.
    [[nodiscard]] Result<LockStatus> answer(const ProjectLocks& locks, const LockId& ask_id, Verdict verdict,
                                            const std::string& actor, const std::optional<Credentials>& by,
                                            Deadline deadline);

    /// Seals the database at `url` for an edit lease; call it before the screen is shown what it edits. From then on no
    /// earlier screen can save. Refused, and the database untouched, unless the store says that the lease is the
    /// current one: token and lock_id are public, so a caller could make them up.
    [[nodiscard]] Result<FencedDatabase> seal(const ProjectLocks& locks, FencingToken token, const LockId& lock_id,
                                              std::string_view url, Deadline deadline);
    /// Writes in one transaction behind the fence. In that transaction the store is asked whether the lease is the
    /// current one and no propagation runs, so a save and a propagation never overlap.
    ///
    /// `fencing_mismatch`, `lock_expired`, `lock_not_held`: another screen edits, or none. `lock_conflict`: a
    /// propagation runs. `store_unavailable`: nobody could be asked. After all of these nothing was written.
    /// `outcome_unknown`: the database did not answer the commit.
    [[nodiscard]] Result<void> save(FencedDatabase& database, const ProjectLocks& locks, const EditWrite& write,
                                    Deadline deadline);

    /// Holds the propagation lock for `job` and seals the database, after every save that had begun is done. Refused at
    /// once with `lock_conflict` while another propagation runs.
    [[nodiscard]] Result<Propagation> propagate(const ProjectLocks& locks, const Holder& job, std::string_view url);
    /// Holds the validation lock for a worker, for as long as one item takes.
    [[nodiscard]] Result<Hold> validate(const ProjectLocks& locks, const Holder& worker);

    /// The audit view: all leases of the project's locks that the log still has, newest first.
    [[nodiscard]] Result<std::vector<ProjectLease>> audit(const ProjectLocks& locks, Deadline deadline);

private:
    Store& store_;
    EditTimes times_;
};

}  // namespace holdfast
