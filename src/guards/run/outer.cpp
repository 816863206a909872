#include "guards/run/outer.hpp"

#include "guards/run/family.hpp"
#include "guards/run/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

using Phase = ChainState::Phase;
using std::chrono::milliseconds;

/// A working inner process notices within this time that the lease is over. Otherwise it is stuck.
constexpr milliseconds time_to_notice{200};
/// After the end of the lease the inner process may still send a release. Longer than that can take.
constexpr milliseconds time_to_finish{30'000};

class Outer {
public:
    Outer(InnerLink link, const OuterOptions& options, const Signals& signals, const Clock& clock)
        : link_(std::move(link)),
          options_(options),
          signals_(signals),
          clock_(clock),
          // A working inner process reports by itself the processes that it cannot end.
          family_([this](const std::string& text) {
              if (options_.notice && !link_.state().ending) options_.notice(text);
          }) {
        family_.look_below(link_.pid(), {});
    }

    std::variant<int, Verdict> run() {
        while (!inner_status_) {
            wait();
            if (!inner_status_ && link_.state().phase == Phase::running) end_in_time();
        }
        const Phase phase = link_.state().phase;
        if (WIFEXITED(*inner_status_) && phase != Phase::running) return WEXITSTATUS(*inner_status_);
        if (phase == Phase::running) {
            end_orphans();
            // The command may have had it, and the inner process could not take it back.
            take_terminal_from_the_dead(controlling_terminal());
        }
        return verdict();
    }

private:
    void wait() {
        std::array ready{pollfd{signals_.descriptor(), POLLIN, 0}, pollfd{link_.descriptor(), POLLIN, 0}};
        // A socket without its other end is readable for ever. The end of the inner process comes as a signal too.
        if (is_silent_) ready[1].fd = -1;
        poll(ready.data(), ready.size(), static_cast<int>(patience().count()));
        if ((ready[1].revents & POLLHUP) != 0) is_silent_ = true;
        command_stopped_ = (ready[1].revents & POLLIN) != 0 && link_.receive();
        while (const auto signal = signals_.next()) on_signal(*signal);
        reap();
        if (command_stopped_ && !inner_status_) stop_job();
    }

    /// In slices, because poll does not count suspended time. Before there is a command nothing is due, but it may
    /// begin unannounced.
    [[nodiscard]] milliseconds patience() const {
        if (killing_since_ || orphans_) return milliseconds{20};
        if (link_.state().phase != Phase::running) return longest_unwatched;
        const Boottime now = clock_.boottime();
        const Boottime next = warned_for_ == link_.kill_at() ? link_.kill_at() : term_at();
        return std::clamp(next - now, milliseconds{1}, longest_unwatched);
    }

    /// Later than the inner process would act, because that may only be busy.
    [[nodiscard]] Boottime term_at() const { return link_.kill_at() - link_.grace() * 3 / 4; }

    void on_signal(int signal) {
        if (signal == SIGCHLD || signal == SIGTTIN || signal == SIGTTOU) return;
        if (orphans_ && is_stop_signal(signal)) kill_at_ = clock_.boottime();
        if (is_stop_signal(signal) && link_.state().phase == Phase::waiting) give_up_waiting(signal);
        if (signal == SIGCONT) {
            // The command continues with us, so earlier news that it was stopped is out of date.
            static_cast<void>(link_.receive());
            command_stopped_ = false;
        }
        link_.pass_on(signal);
        if (signal == SIGTSTP) stop_like_the_terminal(getpid());
    }

    /// The inner process ends the wait when it is asked to. Asked again it did not: its store hangs, or it is stopped.
    void give_up_waiting(int signal) {
        if (given_up_by_) kill(link_.pid(), SIGKILL);
        given_up_by_ = signal;
    }

    /// The inner process renews on. The caller's shell has its prompt, and continues us by `fg` or `bg`.
    void stop_job() const {
        if (options_.notice)
            options_.notice(fmt::format("stopped, and still holding; go on with fg, or with: kill -CONT {}", getpid()));
        // Stop the whole job, as the terminal would: a script around us must stop as well.
        stop_like_the_terminal(0);
    }

    void reap() {
        siginfo_t info{};
        while (info.si_pid = 0, waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
            int status = 0;
            if (info.si_pid == link_.state().group) family_.set_group(0);
            // Reaped only now: while it was a zombie, no other process could get its pid.
            if (waitpid(info.si_pid, &status, 0) != info.si_pid) continue;
            if (info.si_pid == link_.pid()) inner_status_ = status;
            if (info.si_pid == link_.state().group) child_status_ = status;
        }
    }

    /// The inner process lives. If it works, it renews the lease or ends the command before this function acts.
    void end_in_time() {
        const Boottime now = clock_.boottime();
        const Boottime kill_at = link_.kill_at();
        if (now >= term_at() && warned_for_ != kill_at) {
            warned_for_ = kill_at;
            family_.set_group(link_.state().group);
            family_.tell_to_end();
        }
        if (now < kill_at) return killing_since_.reset();
        // Counted from now and not from the end of the lease: we may both have been suspended.
        if (!killing_since_) killing_since_ = now;
        family_.set_group(link_.state().group);
        family_.kill();
        const milliseconds patience = link_.state().ending ? time_to_finish : time_to_notice;
        if (now < *killing_since_ + patience) return;
        if (family_.has_anybody_within_reach()) return;
        stuck_ = true;
        kill(link_.pid(), SIGKILL);
    }

    /// The inner process is gone, and its descendants are ours now. Ends them, with a grace as far as the lease allows.
    void end_orphans() {
        orphans_ = true;
        family_.look_below(getpid(), options_.strangers);
        family_.set_group(child_status_ ? 0 : link_.state().group.load());
        const Boottime now = clock_.boottime();
        kill_at_ = std::min(link_.kill_at(), now + link_.grace());
        if (family_.is_left() && now < kill_at_) family_.tell_to_end();
        while (family_.is_left()) {
            if (clock_.boottime() >= kill_at_) {
                family_.kill();
                if (clock_.boottime() >= kill_at_ + time_to_notice && family_.is_out_of_reach()) return;
            }
            wait();
        }
    }

    [[nodiscard]] Verdict verdict() const {
        Verdict verdict;
        const ChainState& state = link_.state();
        const bool was_lost = state.phase == Phase::running || state.ending;
        verdict.ending = was_lost ? Ending::lost : state.phase == Phase::waiting ? Ending::failed : Ending::child_exit;
        if (verdict.ending == Ending::failed && given_up_by_) {
            verdict.ending = Ending::interrupted;
            verdict.signal = given_up_by_;
            return verdict;
        }
        if (state.child_status != ChainState::no_status) verdict.set_status(state.child_status);
        if (child_status_) verdict.set_status(*child_status_);
        verdict.error = Error{was_lost ? Errc::lock_expired : Errc::outcome_unknown, why()};
        verdict.out_of_reach = family_.out_of_reach();
        if (orphans_ && family_.is_left()) verdict.left_over = family_.left();
        return verdict;
    }

    [[nodiscard]] std::string why() const {
        if (stuck_) return "holdfast was stopped for too long to renew the lease in time";
        const std::string how = WIFSIGNALED(*inner_status_)
                                    ? fmt::format("was killed by signal {}", WTERMSIG(*inner_status_))
                                    : fmt::format("failed with status {}", WEXITSTATUS(*inner_status_));
        return fmt::format("the process of holdfast that holds the lease {}; the lease runs out by itself", how);
    }

    InnerLink link_;
    const OuterOptions& options_;
    const Signals& signals_;
    const Clock& clock_;
    Family family_;
    std::optional<int> inner_status_;
    std::optional<int> child_status_;  ///< The status of the command, if it became our child.
    std::optional<Boottime> warned_for_;
    std::optional<Boottime> killing_since_;
    Boottime kill_at_ = Boottime::max();  ///< Whether SIGTERM was sent to orphans.
    std::optional<int> given_up_by_;      ///< The last signal that asked to end the wait.
    bool command_stopped_ = false;        ///< And the caller does not know it yet.
    bool orphans_ = false;
    bool stuck_ = false;
    bool is_silent_ = false;
};

}  // namespace

std::variant<int, Verdict> guard_inner(InnerLink link, const OuterOptions& options, const Signals& signals,
                                       const Clock& clock) {
    return Outer(std::move(link), options, signals, clock).run();
}

}  // namespace holdfast::guards::run
