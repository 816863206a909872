#pragma once

#include "checks.hpp"

#include <string>

namespace checker {

/// What was seen, what is wrong, and the surroundings of the first thing that is wrong.
[[nodiscard]] std::string report_on(const History& history, const Verdict& verdict);

/// 0: as promised. 1: a promise was broken. 3: a fault that was asked for met nobody, so nothing is proved.
[[nodiscard]] int exit_status_of(const Verdict& verdict);

}  // namespace checker
