#pragma once

#include "base/fd.hpp"
#include "guards/run/signals.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <sys/types.h>
#include <variant>

/// `run` is two processes in a chain. The caller waits for the outer one; the inner one, its child, holds the lease and
/// starts the command. Either ends the command's processes when the other cannot.
namespace holdfast::guards::run {

/// The state that the inner process reports to the outer one, in a page of shared memory. It survives the death of the
/// inner process, and an outer process that was stopped finds the latest state and no queue of old ones.
struct ChainState {
    enum class Phase : int {
        waiting,  ///< No command yet.
        running,  ///< A process of the command exists, or may exist.
        done,     ///< No process of the command is left, or it is left running on purpose.
    };
    static constexpr int no_status = -1;

    std::atomic<Phase> phase{Phase::waiting};
    std::atomic<bool> ending{false};           ///< The lease is lost, and the inner process ends the command.
    std::atomic<pid_t> group{0};               ///< The command's pid; 0 while the number may belong to another process.
    std::atomic<int> child_status{no_status};  ///< The command's status, as `waitpid` returns it.
    std::atomic<std::int64_t> kill_at_ms{
        INT64_MAX};  ///< The boot time by which every process of the command must be dead.
    std::atomic<std::int64_t> grace_ms{0};

    static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);
};

struct UnmapState {
    void operator()(ChainState* state) const;
};
using SharedState = std::unique_ptr<ChainState, UnmapState>;

/// Memory that stays shared over a fork.
[[nodiscard]] Result<SharedState> share_state();

/// The outer process looks at the state at least so often.
inline constexpr std::chrono::milliseconds longest_unwatched{1000};

/// The inner process's end of the chain.
class OuterLink {
public:
    OuterLink(base::Fd socket, SharedState state, pid_t caller_group)
        : socket_(std::move(socket)), state_(std::move(state)), caller_group_(caller_group) {}

    /// Readable when the outer process has passed a signal on, or has died.
    [[nodiscard]] int descriptor() const { return is_broken_ ? -1 : socket_.get(); }
    /// The next signal that it passed on, without waiting.
    [[nodiscard]] std::optional<int> next();
    /// The outer process has died; known as soon as `next` has found no more signals.
    [[nodiscard]] bool is_broken() const { return is_broken_; }
    /// The process group of the outer process, which has the caller's terminal when the command has not.
    [[nodiscard]] pid_t caller_group() const { return caller_group_; }

    [[nodiscard]] ChainState& state() const { return *state_; }
    void expect(Boottime kill_at) const { state_->kill_at_ms = kill_at.time_since_epoch().count(); }
    /// From `now` on there may be a process of the command.
    void begin(std::chrono::milliseconds grace, Boottime now) const;
    /// The command was stopped at its terminal, so the caller wants its prompt.
    void command_was_stopped() const;
    /// Keeps a copy of `descriptor` open as long as the outer process lives, or until there is another for that
    /// `place`.
    void keep_open(std::uint8_t place, int descriptor) const;

private:
    base::Fd socket_;
    SharedState state_;
    pid_t caller_group_;
    bool is_broken_ = false;
};

/// The outer process's end of the chain.
class InnerLink {
public:
    InnerLink(pid_t pid, base::Fd socket, SharedState state)
        : pid_(pid), socket_(std::move(socket)), state_(std::move(state)) {}

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] int descriptor() const { return socket_.get(); }
    [[nodiscard]] const ChainState& state() const { return *state_; }
    [[nodiscard]] Boottime kill_at() const { return Boottime{std::chrono::milliseconds{state_->kill_at_ms}}; }
    [[nodiscard]] std::chrono::milliseconds grace() const { return std::chrono::milliseconds{state_->grace_ms}; }

    void pass_on(int signal) const;
    /// Reads the messages that have arrived, with their descriptors. True if the command was stopped at its terminal.
    [[nodiscard]] bool receive();

private:
    pid_t pid_;
    base::Fd socket_;
    SharedState state_;
    std::map<std::uint8_t, base::Fd> kept_{};
};

/// Forks the inner process. Both go on from here: the outer one has an InnerLink, the inner one an OuterLink. Called
/// before the store is opened: the fork has little to copy, and the outer process holds no connection and no key.
///
/// The inner process hears only of its children by `signals`; the rest comes through its link, so that a signal for
/// the whole job counts once.
[[nodiscard]] Result<std::variant<InnerLink, OuterLink>> fork_inner(Signals& signals);

}  // namespace holdfast::guards::run
