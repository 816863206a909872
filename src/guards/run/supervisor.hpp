#pragma once

#include "guards/run/family.hpp"
#include "guards/run/signals.hpp"
#include "guards/run/watchdog.hpp"
#include "holdfast/hold.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// A child process under a lease: the guard behind `holdfast run`.
namespace holdfast::guards::run {

/// What to run, and how it is to be ended.
struct Job {
    std::vector<std::string> command;
    std::vector<std::string> environment;  ///< `NAME=value`, the whole of it.
    /// A UUID that HOLDFAST_RUN in `environment` contains: by it the watchdog knows the child's processes.
    std::string mark;
    std::chrono::milliseconds grace{5000};  ///< Between SIGTERM and SIGKILL when the lease runs out.
    /// Told in words what the user should know while the child runs.
    std::function<void(const std::string&)> notice;
};

enum class Ending {
    child_exit,    ///< The child ended by itself, or by a signal that somebody sent.
    lost,          ///< The lease was lost, and the child was ended.
    interrupted,   ///< A stop signal came before the child was started.
    not_runnable,  ///< The command was not found or cannot be run.
    failed,        ///< The child could not be started for another reason.
};

struct Verdict {
    Ending ending = Ending::failed;
    std::optional<int> code;                          ///< The child's, if it exited.
    std::optional<int> signal;                        ///< What ended the child, or came before it.
    std::optional<Error> error;                       ///< Why it was lost, could not be run, or not be released.
    std::optional<std::chrono::milliseconds> margin;  ///< Lost: the child was dead so long before the deadline.
    std::vector<Relative> out_of_reach;               ///< Lost: runs as another user, and could not be ended.
    std::vector<Relative>
        left_over;  ///< Still running; the lease is left to run out. pid 0: who that is cannot be told.
};

/// A lease that is held for a job, and who stands in for the supervisor.
struct Guarded {
    HoldGroup group;  ///< Renewed from the call on: most children end before a renewal is due.
    Watchdog watchdog;
};

/// Supervises `job` while its lease is held, and releases it when the child's whole group is dead.
///
/// Without one (somebody else holds for us, or nobody) the child is supervised all the same, but
/// nothing ends it. The calling thread must be the only one that waits for children.
[[nodiscard]] Verdict supervise(const Job& job, Guarded* guarded, const Signals& signals, const Clock& clock);

/// How often to renew, so that SIGTERM, the grace and SIGKILL fit into a lease whose renewal fails.
[[nodiscard]] std::chrono::milliseconds renew_interval(std::chrono::milliseconds ttl, std::chrono::milliseconds grace);

}  // namespace holdfast::guards::run
