// Goal: no weather breaks the promises, and the simulation can tell. Method: a slice of fixed seeds that must pass,
// seeds from HOLDFAST_SEED on in their place where somebody asks for others, and bugs that must be noticed.
#include "simulation/simulation.hpp"

#include "support/run_settings.hpp"

#include <gtest/gtest.h>

namespace holdfast::simulation {
namespace {

constexpr int slice = 1500;

TEST(Simulation, NoWeatherBreaksThePromises) {
    const std::uint64_t first = tests::seed_of("simulation", 1);
    Outcome sum;
    const auto seeds = static_cast<std::uint64_t>(tests::scaled(slice));
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        const Outcome outcome = simulate(seed);
        ASSERT_FALSE(outcome.failure) << story_of(seed);
        sum.grants += outcome.grants;
        sum.refused_writes += outcome.refused_writes;
        sum.promised_overlaps += outcome.promised_overlaps;
        sum.faults += outcome.faults;
    }
    // Weather in which nothing happens proves nothing.
    EXPECT_GT(sum.grants, 3 * seeds);
    EXPECT_GT(sum.faults, 3 * seeds);
    if (seeds < slice) return;  // What is rare need not happen in a shorter run.
    EXPECT_GT(sum.refused_writes, 0U);
    EXPECT_GT(sum.promised_overlaps, 0U);
}

TEST(Simulation, ASeedPlaysTheSameTwice) {
    EXPECT_EQ(story_of(7), story_of(7));
    EXPECT_EQ(simulate(7).steps, simulate(7, Bug::none, Tracing::on).steps);
}

class SimulatedBug : public testing::TestWithParam<Bug> {};

TEST_P(SimulatedBug, IsNoticed) {
    constexpr std::uint64_t most = 2000;
    for (std::uint64_t seed = 1; seed <= most; ++seed)
        if (const Outcome outcome = simulate(seed, GetParam()); outcome.failure) {
            fmt::print("seed {}: {}\n", seed, *outcome.failure);
            return;
        }
    FAIL() << "not noticed in " << most << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Each, SimulatedBug,
                         testing::Values(Bug::deadline_from_reply, Bug::renew_unchecked, Bug::unknown_extends,
                                         Bug::no_seal, Bug::no_fence, Bug::release_resets_token));

}  // namespace
}  // namespace holdfast::simulation
