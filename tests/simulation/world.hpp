#pragma once

#include "holdfast/clock.hpp"

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <vector>

/// A world in one thread, in which everything follows from a seed: time, chance and the network.
namespace holdfast::simulation {

using Millis = std::chrono::milliseconds;
using Action = std::function<void()>;

/// Cheap to start, because a seed plays only some hundred steps.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next();
    /// 0 to `limit` - 1.
    std::int64_t below(std::int64_t limit) {
        return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
    }
    Millis between(Millis least, Millis most) { return least + Millis{below((most - least).count() + 1)}; }
    bool one_in(std::int64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

enum class Tracing { off, on };

class World {
public:
    World(std::uint64_t seed, Tracing tracing) : random(seed), tracing_(tracing) {}

    /// Real time, which nobody in the world can read: each has a clock of its own.
    [[nodiscard]] Millis now() const { return now_; }

    /// Does `action` after `delay`; what is due at the same time happens in the order of arrival.
    void after(Millis delay, Action action);

    /// Hands a message over to the network, which delays it, and in a storm loses and doubles it, too.
    void carry(const Action& deliver);

    /// Does what is due next. Nothing is ever due any more once something broke.
    bool step();
    [[nodiscard]] std::uint64_t steps() const { return steps_; }

    /// Faults happen only while it is stormy.
    bool stormy = true;
    Random random;

    /// The first thing that broke.
    void broke(std::string what);
    [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

    /// What happened, for people. Costs nothing unless somebody looks.
    template <class... Args>
    void note(fmt::format_string<Args...> format, Args&&... args) {
        if (tracing_ == Tracing::off) return;
        remember(fmt::format(format, std::forward<Args>(args)...));
    }
    [[nodiscard]] const std::deque<std::string>& last_notes() const { return notes_; }

private:
    struct Due {
        Millis at;
        std::uint64_t number;
        Action action;
        [[nodiscard]] bool operator>(const Due& other) const {
            return std::tie(at, number) > std::tie(other.at, other.number);
        }
    };

    void remember(std::string note);

    const Tracing tracing_;
    Millis now_{0};
    std::uint64_t numbers_ = 0;
    std::uint64_t steps_ = 0;
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::optional<std::string> failure_;
    std::deque<std::string> notes_;
};

}  // namespace holdfast::simulation
