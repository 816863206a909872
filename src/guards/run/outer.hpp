#pragma once

#include "guards/run/chain.hpp"
#include "guards/run/signals.hpp"
#include "guards/run/supervisor.hpp"
#include "holdfast/clock.hpp"

#include <functional>
#include <set>
#include <string>
#include <variant>

namespace holdfast::guards::run {

/// The parameters of the outer process.
struct OuterOptions {
    std::set<pid_t> strangers{};                       ///< Children of the caller's, from before the inner process.
    std::function<void(const std::string&)> notice{};  ///< Called with messages for the user.
};

/// The life of the outer process: passes signals on, stops with the command at a terminal, and waits for the inner one.
/// When that is killed, stopped or stuck, ends the command's processes before the lease can be taken; the lease is then
/// left to run out.
///
/// The exit status of the inner process, which has reported the outcome itself; otherwise the outcome, for the caller
/// to report.
[[nodiscard]] std::variant<int, Verdict> guard_inner(InnerLink link, const OuterOptions& options,
                                                     const Signals& signals, const Clock& clock);

}  // namespace holdfast::guards::run
