#pragma once

#include "base/interrupt.hpp"
#include "stores/common/poll_ticks.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/mysql/connection.hpp"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace holdfast::stores::mysql {

/// A watched lock, as a poll shows it.
struct PolledLock {
    std::uint64_t seq = 0;
    bool is_open = false;                            ///< Anybody may take the lock.
    std::string holder{};                            ///< The lock_id of the lease; empty if there is none.
    std::map<std::int64_t, std::string> in_queue{};  ///< The lock_ids of the first live tickets, in order.
};

/// Asks for all locks with these names, and for `near_the_head` tickets of each and one more.
[[nodiscard]] Sql poll_query(std::span<const LockName> names, const Clock& clock);
[[nodiscard]] std::map<std::string, PolledLock> read_poll(Answer& answer);

/// What one watch sees of its lock.
struct Position {
    std::uint64_t seq = 0;
    std::uint64_t ahead = 0;  ///< Live tickets before its own, up to a few.
    bool fires = false;       ///< The event that it waits for may have happened.

    /// `lock`: null if it has no row.
    [[nodiscard]] static Position of(const Watch& watch, const PolledLock* lock);
    [[nodiscard]] bool operator==(const Position&) const = default;
};

/// How long to sleep between two polls: short at first and after each change, because another one may follow; long for
/// a waiter far back in a queue. Random, so that processes do not poll at the same times.
class PollRhythm {
public:
    [[nodiscard]] std::chrono::milliseconds next(const Position& position, std::size_t watches);

private:
    std::optional<Position> last_{};
    std::chrono::milliseconds pause_{};
};

/// MySQL's source for the hub of a Store object. It polls, since the database notifies nobody; changes of this Store
/// object are announced to the hub.
class WatchSource final : public WakeSource {
public:
    /// Asks the store, in one round trip. Empty if nobody has created it.
    using Ask = std::function<Result<std::optional<Answers>>(const Sql&)>;

    /// `clock` must outlive this.
    WatchSource(const Clock& clock, Ask ask) : clock_(clock), ask_(std::move(ask)) {}

    void add(std::span<const HubWatch> watches) override;
    void remove(std::span<const HubWatch> watches) override;
    [[nodiscard]] std::vector<Sighting> look(std::span<const HubWatch> watches) override;
    [[nodiscard]] Heard listen(std::chrono::milliseconds most) override;
    void interrupt() override { interrupt_.raise(); }

private:
    [[nodiscard]] Result<std::map<std::string, PolledLock>> poll(std::span<const HubWatch> watches);

    const Clock& clock_;
    const Ask ask_;
    const PollTicks ticks_{};
    std::unordered_map<std::uint64_t, PollRhythm> rhythms_{};  ///< Of each watch.
    const base::Interrupt interrupt_{};
};

}  // namespace holdfast::stores::mysql
