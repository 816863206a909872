#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

/// Electing a leader among processes, on one lock: who holds it leads.
///
/// A leader learns that it no longer leads as every holder does: `Leadership::lost()` is asked to stop before the store
/// lets anybody else lead, unless an operator takes the lock away. A leader that is paused may learn it late. So what
/// only the leader may do carries `Leadership::token()`, and the place where it is done refuses a token that is lower
/// than one it has seen (`docs/reference/library.md` shows how). An observer is told what the store said a moment ago,
/// and may be behind: it decides nothing.
namespace [[gnu::visibility("default")]] holdfast {

/// Who leads, as the store showed it.
struct Leader {
    LockId lock_id{};      ///< Of this term: another one for each election.
    FencingToken token{};  ///< Higher than that of every leader before.
    Holder holder{};
    std::string value{};  ///< What the leader proclaims, such as its address. Untrusted text.
    Instant since{};      ///< By the store's clock.

    [[nodiscard]] bool operator==(const Leader&) const = default;
};

/// A term that was won. Ends when it is resigned, lost, or destroyed, which resigns. Threads: as for `Hold`; `proclaim`
/// may be called from any thread, by one at a time.
class Leadership {
public:
    [[nodiscard]] FencingToken token() const { return hold_.token(); }  ///< For everything that only the leader may do.
    [[nodiscard]] std::stop_token lost() const { return hold_.lost(); }  ///< Stop leading now.
    [[nodiscard]] std::optional<Error> loss() const { return hold_.loss(); }
    [[nodiscard]] const Hold& hold() const { return hold_; }
    [[nodiscard]] const std::string& value() const { return value_; }

    /// Shows observers another value, at most 4 KiB together with `HoldOptions::meta`. `lock_expired` or
    /// `lock_not_held` if this process no longer leads; after `outcome_unknown` they may see either value.
    [[nodiscard]] Result<void> proclaim(std::string value);

    /// Ends the term, and lets the next candidate lead. As `Hold::release`.
    Result<void> resign() { return hold_.release(); }

private:
    friend class Election;
    Leadership(Hold hold, HoldOptions options, std::string value);

    Hold hold_;
    HoldOptions options_;
    std::string value_;
};

/// Follows who leads, until it is destroyed. The destructor waits for the observer's function, so it must not be called
/// from there.
class LeaderWatch {
public:
    LeaderWatch(LeaderWatch&&) noexcept = default;
    LeaderWatch& operator=(LeaderWatch&&) noexcept = default;
    ~LeaderWatch() = default;

private:
    friend class Election;
    explicit LeaderWatch(std::jthread thread) : thread_(std::move(thread)) {}
    std::jthread thread_;
};

/// What an observer is told: who leads; nobody; or, with an error, that the store cannot be asked, so that nobody
/// knows.
using LeaderSeen = std::function<void(const Result<std::optional<Leader>>&)>;

/// One election, named by its lock. Any number of processes may campaign and observe. A value: cheap to copy, as long
/// as the store lives.
class Election {
public:
    Election(Store& store, LockName name) : store_(&store), name_(std::move(name)) {}

    /// Waits in the fair queue to lead, and proclaims `value` from the first moment of the term.
    ///
    /// `options` are those of `hold`, except that it waits for ever unless they name a wait; `cancel` ends that. While
    /// the store is away the wait goes on. `options.ttl` is how long a crashed leader keeps others waiting.
    [[nodiscard]] Result<Leadership> campaign(std::string value, HoldOptions options = {}) const;

    /// Who leads now; empty if nobody does.
    [[nodiscard]] Result<std::optional<Leader>> leader(Deadline deadline) const;

    /// Tells `seen` who leads: at once, and then whenever a new term began, a term ended, another value was proclaimed,
    /// or the store can no longer be asked or can be asked again; each within a second. Changes that follow each other
    /// quickly may be told as one.
    ///
    /// `seen` is called on a thread of this watch, one call at a time. It may block, and hears the newest state then.
    [[nodiscard]] Result<LeaderWatch> observe(LeaderSeen seen) const;

private:
    Store* store_;
    LockName name_;
};

}  // namespace holdfast
