#pragma once

#include "holdfast/request.hpp"
#include "server/http.hpp"

#include <memory>
#include <string>
#include <vector>

namespace holdfast::server {

/// Each role may do what those before it may.
enum class Role {
    nobody,
    viewer,  ///< Reads.
    holder,  ///< Takes locks, and gives back its own.
    admin,   ///< Breaks, approves, repairs.
};
[[nodiscard]] std::string_view name_of(Role role);

/// A role for all locks whose names begin with `prefix`.
struct Right {
    std::string prefix{};
    Role role = Role::nobody;
};

/// Who calls, and what they may do.
struct Identity {
    enum class Proof { open, token, cookie, proxy };

    std::string user{};  ///< Empty where nobody was asked.
    Proof proof = Proof::open;
    std::vector<Right> rights{};

    /// The highest role for this lock.
    [[nodiscard]] Role role_for(const LockName& name) const;
    /// The highest role for any lock.
    [[nodiscard]] Role highest_role() const;
    /// True if every lock whose name begins with `prefix` may be read.
    [[nodiscard]] bool sees_all_of(std::string_view prefix) const;
};

/// Finds out who sent a request. Called on the loop's thread, so it must not block.
class Authorizer {
public:
    virtual ~Authorizer() = default;
    /// Refused with `denied`: nobody is known to have sent it. Anything that fails refuses.
    [[nodiscard]] virtual Result<Identity> authorize(const HttpRequest& request) = 0;
    /// Whether every caller has to prove who they are. Without that only the loopback is served.
    [[nodiscard]] virtual bool demands_proof() const = 0;
};

/// Everybody who can connect may do everything: for the loopback.
[[nodiscard]] std::unique_ptr<Authorizer> open_to_all();

/// The role that a request needs for its lock.
[[nodiscard]] Role role_needed(const Request& request);

/// Refused with `denied`, unless `who` may send `request`.
[[nodiscard]] Result<void> permit(const Identity& who, const Request& request);
[[nodiscard]] Result<void> permit(const Identity& who, Role needed, const LockName& name);

/// Says in the request who sends it: `who`, or what the client claims where nobody proved anything, or its address.
void sign(Request& request, const Identity& who, const std::string& peer);

}  // namespace holdfast::server
