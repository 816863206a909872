#pragma once

#include "simulation/bugs.hpp"
#include "simulation/world.hpp"

namespace holdfast::simulation {

/// What became of one seed.
struct Outcome {
    std::uint64_t seed = 0;
    std::uint64_t steps = 0;
    std::uint64_t grants = 0;
    std::uint64_t refused_writes = 0;     ///< By the fence: how often it was needed.
    std::uint64_t promised_overlaps = 0;  ///< Two holders after a jump of the store's clock, or a restore.
    std::uint64_t faults = 0;
    std::optional<std::string> failure{};
    std::deque<std::string> last_notes{};  ///< Only with `Tracing::on`.
};

/// Plays `seed`: a storm of faults, then calm weather. The same seed always plays the same.
///
/// Checked all the time: at most one client believes that it holds the lock, except the one whose lock was
/// broken, and except after the store's clock jumped forward or the store was restored. Tokens rise with every
/// grant. No update of the fenced register is ever lost. In calm weather every client gets its turn. At the end: the
/// audit chain is whole.
[[nodiscard]] Outcome simulate(std::uint64_t seed, Bug bug = Bug::none, Tracing tracing = Tracing::off);

/// The seed, what broke and what happened before, from a second run of the same seed.
[[nodiscard]] std::string story_of(std::uint64_t seed, Bug bug = Bug::none);

}  // namespace holdfast::simulation
