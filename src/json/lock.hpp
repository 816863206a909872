#pragma once

#include "holdfast/request.hpp"
#include "holdfast/store.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"
#include "values/usual_hold.hpp"

#include <optional>
#include <string>
#include <vector>

/// Locks, grants and replies. Each is read as it was written: the same value comes back, provided that its texts are
/// UTF-8, its times have years of four digits and its numbers are below 2^53, as all values are that a store accepts.
/// Readers ignore unknown fields, because a newer version may add some.
namespace holdfast::json {

/// One lock. `store` is what the lock's store said of itself.
[[nodiscard]] Object lock(const LockStatus& status, const StoreInfo& store);

/// What `status NAME` says: a lock, how long it has been held, how long it usually is, and when a waiter that comes now
/// would have it.
[[nodiscard]] Object lock_in_use(const LockStatus& status, const StoreInfo& store,
                                 const std::optional<UsualHold>& usual);

/// `{"locks":[…]}`, and the same of locks that somebody asks for: `{"overrides":[…]}`.
[[nodiscard]] Object locks(const std::vector<LockStatus>& locks, const StoreInfo& store);
[[nodiscard]] Object overrides(const std::vector<LockStatus>& locks, const StoreInfo& store);

/// The answer of `check` for the current token: a lock and `"current":true`.
[[nodiscard]] Object current(const LockStatus& status, const StoreInfo& store);

/// The answers of `release` for a lock that was given back, and for one that this lease did not hold.
[[nodiscard]] Object released(const LockStatus& status, const StoreInfo& store);
[[nodiscard]] Object not_released(const LockName& name);

/// What `unlock` says: `{"released":{…the lock as it was…},"may_run_until"}`. `until`: absent if the lease had run out.
[[nodiscard]] Object broken(const LockStatus& before, const std::optional<Instant>& until, const StoreInfo& store);

/// What `repair` says of the lock as it is now; `what` could not be read, absent if everything could.
[[nodiscard]] Object repaired(const LockStatus& status, const StoreInfo& store, const std::optional<std::string>& what);

enum class Joined { no, yes };

/// A lock that was just granted, with the secret of its lease: only for the caller. `joined`: a command around this one
/// held the lock already.
[[nodiscard]] Object grant(const Outcome& outcome, const Credentials& as, const StoreInfo& store,
                           Joined joined = Joined::no);

/// A lock that was read, and what the document says of its store.
struct ReadLock {
    LockStatus status;
    std::optional<StoreId> store_id{};
    Grade grade = Grade::c;
};

struct ReadGrant {
    Outcome outcome;
    Credentials as;
    Joined joined = Joined::no;
    std::optional<StoreId> store_id{};
    Grade grade = Grade::c;
};

/// Refused with `usage` and the path of the field that does not fit. `where` is the path of `node` in its document.
[[nodiscard]] Result<ReadLock> read_lock(const Node& node, const std::string& where = "");
[[nodiscard]] Result<ReadGrant> read_grant(const Node& node, const std::string& where = "");
[[nodiscard]] Result<std::vector<LockStatus>> read_locks(const Node& node);

/// What a store answers to one request: a lock and `stolen_from`, or `{"error":{…}}`. Shows no secret.
[[nodiscard]] Object reply(const Reply& reply, const StoreInfo& store);

/// The outer result is refused where the document does not fit, the inner one where the request was.
[[nodiscard]] Result<Reply> read_reply(const Node& node, const std::string& where = "");

/// The answers to a batch: `{"replies":[…]}`.
[[nodiscard]] Object replies(const std::vector<Reply>& replies, const StoreInfo& store);
[[nodiscard]] Result<std::vector<Reply>> read_replies(const Node& node);

}  // namespace holdfast::json
