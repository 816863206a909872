#pragma once

#include "kernel/little_store.hpp"

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

/// Random histories: what a few clients do to a few locks while a clock runs, jumps and slips back.
namespace holdfast::tests {

enum class Move : std::uint8_t {
    idle,
    take,    ///< Acquire with new credentials, without waiting.
    queue,   ///< The same, with a ticket.
    repeat,  ///< The client's last Acquire of this lock once more.
    renew,
    revive,
    release,
    cancel,
    transfer,
    transfer_back,  ///< To the credentials that another client used before.
    break_seen,     ///< What is there now.
    break_old,      ///< What the client had.
    check,
    ask,
    approve,
    deny,
    approve_as_holder,
    approve_as_stranger,
    forge,  ///< The public lock_id of the lease with a key of one's own, in some request.
    squat,  ///< The public lock_id of the question or of a ticket with a key of one's own.
    prune,
    expire,         ///< What is there now.
    expire_old,     ///< What the client had.
    take_over,      ///< What is there now, as it is or with an older renewal.
    take_over_old,  ///< What the client had.
};
inline constexpr std::size_t moves = 25;
inline constexpr std::size_t clients = 4;
inline constexpr std::size_t locks = 3;

/// One thing that one client does, after some time. All zero: nothing happens, which is what a failing
/// history shrinks to where it can.
struct Act {
    Move move = Move::idle;
    std::uint32_t client = 0;
    std::uint32_t lock = 0;
    std::uint32_t variant = 0;  ///< Chooses among ttls, limits, exclusions.
    std::chrono::milliseconds pause{0};

    /// Spreads the bits of `code` over the fields; 0 is idle.
    [[nodiscard]] static Act from(std::uint64_t code);
};
std::ostream& operator<<(std::ostream& out, const Act& act);

/// Turns acts into requests: remembers what each client used last on each lock.
class Cast {
public:
    explicit Cast(LittleStore& store);

    /// Empty when the client has nothing to do this with.
    [[nodiscard]] std::optional<Request> request_of(const Act& act);
    [[nodiscard]] const LockName& name(std::uint32_t lock) const { return names_[lock]; }

private:
    [[nodiscard]] Credentials fresh();
    [[nodiscard]] Acquire acquire(const Act& act);
    [[nodiscard]] Acquire take_over(const Act& act, const Lease& seen);
    /// What the client uses that holds the lock, if it still has it.
    [[nodiscard]] std::optional<Credentials> holder_of(std::uint32_t lock);
    [[nodiscard]] Request forged(const Act& act);
    [[nodiscard]] std::optional<Request> squatting(const Act& act);
    [[nodiscard]] std::optional<Request> answer(const Act& act, Verdict verdict, std::optional<Credentials> by);
    [[nodiscard]] std::optional<Acquire>& last(const Act& act) { return last_[act.client][act.lock]; }

    LittleStore& store_;
    std::vector<LockName> names_;
    std::uint64_t made_ = 0;
    std::array<std::array<std::optional<Acquire>, locks>, clients> last_{};
};

/// Applies `request` and names the first invariant of the protocol that the step broke; empty if none.
[[nodiscard]] std::string broken_by(LittleStore& store, const Request& request);

}  // namespace holdfast::tests
