#pragma once

#include "holdfast/request.hpp"

#include <chrono>
#include <string_view>

/// Short ways to say the requests that tests make most.
namespace holdfast::tests {

/// The lock `text`. Throws where no lock can have that name.
[[nodiscard]] LockName lock(std::string_view text);

/// A Ttl. Throws outside its limits.
[[nodiscard]] Ttl lasting(std::chrono::milliseconds time);

/// An Acquire with fresh credentials; change a copy for anything unusual.
[[nodiscard]] Acquire by(std::string_view who, LockName name, std::chrono::milliseconds ttl);
[[nodiscard]] Acquire by_alice(LockName name, std::chrono::milliseconds ttl = std::chrono::seconds{30});
[[nodiscard]] Acquire by_bob(LockName name, std::chrono::milliseconds ttl = std::chrono::seconds{30});
[[nodiscard]] Acquire by_carol(LockName name, std::chrono::milliseconds ttl = std::chrono::seconds{30});

/// The same request, waiting in the queue.
[[nodiscard]] Acquire queued(Acquire request, std::chrono::milliseconds ticket = std::chrono::seconds{10});

/// What the holder that `grant` made sends later.
[[nodiscard]] Renew renewal(const Acquire& grant, Revive revive = Revive::no);
[[nodiscard]] Release release(const Acquire& grant);
[[nodiscard]] Cancel cancel(const Acquire& grant);
/// What anybody may send once its lease has run out.
[[nodiscard]] Expire expiry(const Acquire& grant);
[[nodiscard]] Check check(const LockName& name, FencingToken token);

}  // namespace holdfast::tests
