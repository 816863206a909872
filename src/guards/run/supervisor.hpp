#pragma once

#include "guards/run/chain.hpp"
#include "guards/run/family.hpp"
#include "guards/run/signals.hpp"
#include "holdfast/hold.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// A child process under a lease: the guard behind `holdfast run`.
namespace holdfast::guards::run {

/// The command, and how to end it.
struct Job {
    std::vector<std::string> command;
    std::vector<std::string> environment;   ///< `NAME=value`, the whole of it.
    std::chrono::milliseconds grace{5000};  ///< Between SIGTERM and SIGKILL when the lease runs out.
    /// Processes that outlive the child by the grace are left running, and the lease to run out. Otherwise the lease is
    /// held for them as it was for the child.
    bool leave_behind = false;
    /// Called with messages for the user while the child runs.
    std::function<void(const std::string&)> notice;
};

enum class Ending {
    child_exit,    ///< The child ended by itself, or by a signal of another process.
    lost,          ///< The lease was lost, and the child was ended.
    interrupted,   ///< A stop signal came before the child was started.
    not_runnable,  ///< The command was not found or cannot be run.
    failed,        ///< The child could not be started for another reason.
};

struct Verdict {
    Ending ending = Ending::failed;
    std::optional<int> code;                          ///< The child's, if it exited.
    std::optional<int> signal;                        ///< The signal that ended the child, or came before its start.
    std::optional<Error> error;                       ///< Why it was lost, could not be run, or not be released.
    std::optional<std::chrono::milliseconds> margin;  ///< Lost: the child was dead so long before the deadline.
    std::vector<Relative> out_of_reach;               ///< Lost: runs as another user, and could not be ended.
    std::vector<Relative>
        left_over;  ///< Still running; the lease is left to run out. pid 0: their names are not known.

    /// How the child ended, as `waitpid` has it.
    void set_status(int status);
};

/// The lease that is held for a job, and the outer process.
struct Guarded {
    HoldGroup group;  ///< Renewed from the call on: most children end before a renewal is due.
    OuterLink& outer;
};

/// Supervises `job` while its lease is held, and releases it when all processes that the child started are dead. When
/// the outer process dies they are ended.
///
/// Without `guarded` (another process holds the lease for us, or nobody does) the child is supervised, but nothing ends
/// it. The calling thread must be the only one that waits for children.
[[nodiscard]] Verdict supervise(const Job& job, Guarded* guarded, const Signals& signals, const Clock& clock);

/// How often to renew, so that SIGTERM, the grace and SIGKILL fit into a lease whose renewal fails.
[[nodiscard]] std::chrono::milliseconds renew_interval(std::chrono::milliseconds ttl, std::chrono::milliseconds grace);

}  // namespace holdfast::guards::run
