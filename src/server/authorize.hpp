#pragma once

#include "access/authenticator.hpp"
#include "access/decision.hpp"
#include "server/http.hpp"
#include "server/serve.hpp"

#include <memory>
#include <optional>

namespace holdfast::server {

using access::Endpoint;
using access::Identity;
using access::Role;

/// Finds out who sent a request, from its headers and its address.
class Authorizer {
public:
    /// Refused with `usage` for options that contradict each other, and with `config` if the token file cannot be used:
    /// a daemon that lets nobody in is a mistake when it starts. Later it may be repaired.
    [[nodiscard]] static Result<std::unique_ptr<Authorizer>> create(const ServeOptions& options, const Clock& clock);

    /// Refused with `denied`: nobody is known to have sent it. Anything that fails refuses.
    [[nodiscard]] Result<Identity> authorize(const HttpRequest& request);
    /// A page of another origin can make a browser send its cookies, but not this header. Refused with `denied`.
    [[nodiscard]] static Result<void> expect_no_forgery(const HttpRequest& request, const Identity& who);
    /// For a connection that stays open: what its caller may do now, or `denied`.
    [[nodiscard]] Result<Identity> again(const Identity& who) { return door_->again(who); }

    /// Whether every caller has to prove who they are. Without that only the loopback is served.
    [[nodiscard]] bool demands_proof() const { return !door_->is_open(); }
    [[nodiscard]] access::Authenticator& door() { return *door_; }

private:
    explicit Authorizer(std::unique_ptr<access::Authenticator> door) : door_(std::move(door)) {}
    std::unique_ptr<access::Authenticator> door_;
};

/// Refused with `denied`, unless `who` may send `request`.
[[nodiscard]] Result<void> permit(const Identity& who, const Request& request);
[[nodiscard]] Result<void> permit(const Identity& who, Role needed, const LockName& name);

/// The answer to a question that an operator sends: looks at who asked, and marks an admin that approves their own.
/// Refused with `denied`, or with `usage` for want of a reason. Blocks.
[[nodiscard]] Result<void> permit_answer(const Identity& who, Answer& answer, Store& store, Deadline deadline);

}  // namespace holdfast::server
