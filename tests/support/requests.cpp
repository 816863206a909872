#include "support/requests.hpp"

#include <stdexcept>
#include <string>

namespace holdfast::tests {

LockName lock(std::string_view text) {
    auto name = LockName::parse(text);
    if (!name) throw std::invalid_argument(name.error().message);
    return *name;
}

Ttl lasting(std::chrono::milliseconds time) {
    const auto ttl = Ttl::of(time);
    if (!ttl) throw std::invalid_argument(ttl.error().message);
    return *ttl;
}

Acquire by(std::string_view who, LockName name, std::chrono::milliseconds ttl) {
    Acquire request{.name = std::move(name), .as = Credentials::random(), .ttl = lasting(ttl)};
    request.holder.text = who;
    return request;
}

Acquire by_alice(LockName name, std::chrono::milliseconds ttl) { return by("alice", std::move(name), ttl); }
Acquire by_bob(LockName name, std::chrono::milliseconds ttl) { return by("bob", std::move(name), ttl); }
Acquire by_carol(LockName name, std::chrono::milliseconds ttl) { return by("carol", std::move(name), ttl); }

Acquire queued(Acquire request, std::chrono::milliseconds ticket) {
    request.ticket = lasting(ticket);
    return request;
}

Renew renewal(const Acquire& grant, Revive revive) { return {grant.name, grant.as, grant.ttl, revive}; }
Release release(const Acquire& grant) { return {grant.name, grant.as}; }
Cancel cancel(const Acquire& grant) { return {grant.name, grant.as}; }
Expire expiry(const Acquire& grant) { return {grant.name, grant.as.lock_id}; }
Check check(const LockName& name, FencingToken token) { return {.name = name, .token = token}; }

}  // namespace holdfast::tests
