#pragma once

#include "holdfast/hold.hpp"
#include "holdfast/request.hpp"

#include <chrono>
#include <optional>

/// What taking a hold asks for, and what its caller is told: the same for one that waits with a thread and one without.
namespace holdfast::client {

/// `options`, with the clock of `store` if they name none.
[[nodiscard]] inline HoldOptions with_clock_of(const Store& store, HoldOptions options) {
    if (options.clock == nullptr) options.clock = &store.clock();
    return options;
}

/// Under new credentials.
[[nodiscard]] Acquire acquire_for(const LockName& name, const HoldOptions& options);

/// How much must be left of a lease that was handed over, so that it can be renewed before the work has to stop. Absent
/// if nobody renews it: then it is extended before it is used.
[[nodiscard]] std::optional<std::chrono::milliseconds> least_time_to_renew(const HoldOptions& options);

/// The pause before one more attempt, with jitter so that callers spread out. Absent when there is none.
[[nodiscard]] std::optional<std::chrono::milliseconds> pause_before_retry(const Retry& retry, unsigned attempts_made);

/// How a wait was to end.
struct WaitAsked {
    bool waited = false;  ///< In the queue.
    bool is_cancelled = false;
};

/// The refusal of a wait that has ended. A store that was away, and an outcome that nobody knows, stay what they are,
/// except that a cancelled wait for a store that was away has changed nothing.
[[nodiscard]] Error end_of_wait(Error refusal, const WaitAsked& asked);

/// Tells the observer who or what is in the way: once for each lease and each reason.
class BlockedNotice {
public:
    /// Both must outlive it.
    BlockedNotice(const HoldOptions& options, const LockName& name) : options_(options), name_(name) {}

    void tell(const Error& cause);

private:
    struct Seen {
        Errc code;
        std::optional<LockName> name;
        std::optional<LockId> lock_id;
        [[nodiscard]] bool operator==(const Seen&) const = default;
    };

    const HoldOptions& options_;
    const LockName& name_;
    std::optional<Seen> told_{};
};

}  // namespace holdfast::client
