#pragma once

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Who may do what through the daemon: roles, API tokens and the decision. Without network and without locks.
namespace holdfast::access {

/// What somebody may do, each with everything that the one before may.
enum class Role {
    nobody,  ///< Nothing.
    viewer,  ///< Reads.
    holder,  ///< Takes locks, and works with the leases that it has the keys of.
    admin,   ///< Breaks locks, answers for holders, looks after the store.
};
[[nodiscard]] std::string_view name_of(Role role);

/// A role for some of the locks.
///
/// An area is part of a lock's name, compared by bytes and in whole parts: `team` covers the lock `team` and every lock
/// below it, `team/…`, and not `teams`; `team/` covers only what is below. The empty area covers all locks.
struct Grant {
    Role role = Role::viewer;
    std::string area{};

    /// `viewer`, `holder:team-a`. Refused with `usage`, also for an area that no lock can have.
    [[nodiscard]] static Result<Grant> parse(std::string_view text);
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool covers(const LockName& name) const;

    [[nodiscard]] bool operator==(const Grant&) const = default;
};

/// How a caller proved who it is.
enum class Auth {
    open,    ///< Not at all: the daemon serves this host and has no API tokens.
    token,   ///< An API token in a header.
    cookie,  ///< An API token in the cookie of a signed-in browser.
    proxy,   ///< A trusted proxy named the user.
};
[[nodiscard]] std::string_view name_of(Auth auth);

/// Who sends a request.
struct Identity {
    Auth auth = Auth::token;
    std::string user{};      ///< Empty where nobody proved to be anybody.
    std::string address{};   ///< Where the request came from.
    std::string token_id{};  ///< Of the entry in the token file; empty without one.
    std::vector<Grant> grants{};

    /// The caller where nobody has to prove anything.
    [[nodiscard]] static Identity open(std::string address);
    /// The highest role for this lock.
    [[nodiscard]] Role role_for(const LockName& name) const;
    /// The highest role for any lock.
    [[nodiscard]] Role highest_role() const;
    /// The role for all locks.
    [[nodiscard]] Role role_for_all() const;

    /// `alice from 10.0.0.7`, or the address alone, for the audit log.
    [[nodiscard]] std::string text() const;
};

}  // namespace holdfast::access
