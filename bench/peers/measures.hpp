#pragma once

#include "peers/comparison.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::bench {

/// Where the programs are, and where stores may be made.
struct Site {
    std::string holdfast;  ///< The command.
    std::string stamp;     ///< See stamp.cpp.
    std::filesystem::path folder;
    int rounds = 7;
};

/// P1: a command under a lock.
[[nodiscard]] std::vector<Line> measure_run(const Site& site);
/// P2: acquire and release by one client.
[[nodiscard]] std::vector<Line> measure_pairs(const Site& site);
/// P9: from one holder to the next, with eight waiters.
[[nodiscard]] std::vector<Line> measure_handover(const Site& site);

}  // namespace holdfast::bench
