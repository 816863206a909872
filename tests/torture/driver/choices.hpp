#pragma once

#include "torture/driver/options.hpp"

#include <random>

namespace torture {

/// One thing that goes wrong. Drawn from the seed alone, so that the same seed gives the same sequence.
struct Choice {
    std::string fault{};
    std::chrono::milliseconds pause{};  ///< Before it.
    std::size_t place{};                ///< The victim, where nobody holds a lock like `lock`; or which node it is.
    std::string lock{};                 ///< Its holder is the victim, or that of one like it.
    std::chrono::milliseconds length{};
    std::chrono::milliseconds step{};   ///< By how much a clock moves.
    std::chrono::milliseconds delay{};  ///< Of messages.
    std::uint64_t messages{};           ///< How many are lost.
};

/// The sequence of a seed, without end.
class Choices {
public:
    explicit Choices(const Options& options);
    [[nodiscard]] Choice next();

private:
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    void deal();

    const Options& options_;
    std::vector<std::string> weighted_{};  ///< Each fault as often as its weight says, in the order of this deal.
    std::size_t dealt_ = 0;
    std::mt19937_64 random_;
};

}  // namespace torture
