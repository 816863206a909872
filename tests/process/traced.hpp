#pragma once

#include "holdfast/lease.hpp"
#include "process/answer_line.hpp"
#include "support/process.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The small program `contender` under strace, which counts its system calls and makes them fail.
namespace holdfast::tests {

/// One thing to ask of a store, as the program's arguments say it.
struct Call {
    std::string what;  ///< acquire, renew, release, prune, exchange:OTHER
    std::string url;
    LockName name;
    Credentials as;
};

/// A system call, by its number among those of the same name.
struct NthCall {
    std::string syscall;
    int number = 0;
};

/// How the program ended, and what it said before.
struct Ending {
    Exit exit{};
    std::optional<AnswerLine> answer{};
};

/// Whether a process may be traced here.
[[nodiscard]] bool can_trace();

/// The calls by which a store opens, writes, syncs, renames, locks and closes.
[[nodiscard]] const std::vector<std::string>& watched_syscalls();

/// Runs the call once and lists its watched system calls, from the first that names `folder` on.
[[nodiscard]] std::vector<NthCall> calls_on(const std::filesystem::path& folder, const Call& call);

/// Runs the call once and lists what it forces to the disk, in order, by the name that it has at that moment.
[[nodiscard]] std::vector<std::string> synced_paths(const Call& call);

/// Starts the call with something done to one of its system calls: `signal=KILL`, `error=EIO`. What strace
/// sees goes to the file `log`.
[[nodiscard]] Process start_injected(const Call& call, const NthCall& at, const std::string& what,
                                     const std::filesystem::path& log = "/dev/null");

/// The same, to the end.
[[nodiscard]] Ending run_injected(const Call& call, const NthCall& at, const std::string& what);

/// Runs `examine`. What it throws becomes a failure here, where a trace still says which fault it was.
void without_exceptions(const std::function<void()>& examine);

}  // namespace holdfast::tests
