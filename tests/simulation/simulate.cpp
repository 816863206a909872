// `simulate --seeds N [--from SEED]` plays many seeds and stops at the first that breaks; `simulate --seed SEED`
// tells the story of one.
#include "simulation/simulation.hpp"

#include <chrono>
#include <random>
#include <string_view>

namespace {

using namespace holdfast::simulation;

int play(std::uint64_t first, std::uint64_t count) {
    const auto began = std::chrono::steady_clock::now();
    Outcome sum;
    for (std::uint64_t seed = first; seed - first < count; ++seed) {
        const Outcome outcome = simulate(seed);
        sum.steps += outcome.steps;
        sum.grants += outcome.grants;
        sum.faults += outcome.faults;
        sum.refused_writes += outcome.refused_writes;
        sum.promised_overlaps += outcome.promised_overlaps;
        if (!outcome.failure) continue;
        fmt::print("{}", story_of(seed));
        return 1;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    fmt::print(
        "{} seeds from {}: {} steps in {:.1f} s ({:.2f} million a minute), {} grants, {} faults, {} writes refused by "
        "the fence, {} overlaps after clock jumps and restores, which nobody promises to prevent; nothing broke\n",
        count, first, sum.steps, took.count(), static_cast<double>(sum.steps) * 60 / took.count() / 1e6, sum.grants,
        sum.faults, sum.refused_writes, sum.promised_overlaps);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t seeds = 10'000;
    std::uint64_t first = std::random_device{}();
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view flag = argv[i];
        const std::uint64_t value = std::stoull(argv[i + 1]);
        if (flag == "--seed") {
            fmt::print("{}", story_of(value));
            return simulate(value).failure ? 1 : 0;
        }
        if (flag == "--seeds") seeds = value;
        if (flag == "--from") first = value;
    }
    fmt::print("simulate --seeds {} --from {}\n", seeds, first);
    return play(first, seeds);
}
