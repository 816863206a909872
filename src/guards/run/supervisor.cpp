#include "guards/run/supervisor.hpp"

#include "base/os_error.hpp"
#include "guards/run/spawn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <list>
#include <poll.h>
#include <set>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

using std::chrono::milliseconds;

/// Before the deadline: SIGKILL must have done its work by then.
constexpr milliseconds kill_margin{50};

/// A child that has run this long is worth a thread that renews.
constexpr milliseconds short_life{20};

/// A terminal that this process has in the foreground, or -1.
int foreground_terminal() {
    for (const int fd : {0, 1, 2})
        if (isatty(fd) != 0 && tcgetpgrp(fd) == getpgrp()) return fd;
    return -1;
}

class Supervisor {
public:
    Supervisor(const Job& job, Guarded* guarded, const Signals& signals, const Clock& clock)
        : job_(job),
          group_(guarded == nullptr ? nullptr : &guarded->group),
          watchdog_(guarded == nullptr ? nullptr : &guarded->watchdog),
          signals_(signals),
          clock_(clock),
          terminal_(foreground_terminal()),
          changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          visible_(processes_are_visible()) {}

    Verdict run() {
        // Orphans of the child come to us, so that nobody slips away when the lease is lost.
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        // Children that were there before us, as after a shell's exec, are not ours to wait for or to end.
        strangers_ = children();
        if (!visible_ && group_ != nullptr && job_.notice)
            job_.notice("warning: without /proc only the command's process group can be ended when the lease is lost");
        if (!start()) return std::move(verdict_);
        while (!child_ended_) wait_and_serve();
        take_terminal_back();
        settle();
        return std::move(verdict_);
    }

private:
    bool start() {
        // A stop signal that came before the child does not start it any more.
        while (const auto signal = signals_.next())
            if (is_stop_signal(*signal)) return give_up(Ending::interrupted, std::nullopt, signal);
        if (group_ != nullptr) {
            if (auto ready = ready_watchdog(); !ready) return give_up(Ending::failed, ready.error(), std::nullopt);
            foretell();
        }
        const Started started = spawn({job_.command, job_.environment, signals_.mask_before(), terminal_,
                                       watchdog_ != nullptr ? watchdog_->pipe() : -1,
                                       group_ != nullptr ? doom().term_at : Boottime::max()});
        if (started.error != 0) {
            take_terminal_back();
            if (started.error == ETIME)
                return give_up(Ending::lost,
                               Error{Errc::lock_expired, "the lease ran out before the command could be started"},
                               std::nullopt);
            const bool runnable = started.error != ENOENT && started.error != EACCES && started.error != ENOEXEC &&
                                  started.error != ENOTDIR && started.error != EISDIR;
            verdict_.code = started.error == ENOENT || started.error == ENOTDIR ? 127 : 126;
            return give_up(runnable ? Ending::failed : Ending::not_runnable,
                           Error{Errc::usage, fmt::format("cannot run {}: {}", job_.command.front(),
                                                          base::os_message(started.error))},
                           std::nullopt);
        }
        child_ = started.pid;
        if (group_ != nullptr)
            for (const Hold& hold : group_->holds())
                loss_alarms_.emplace_back(hold.lost(), [this] { eventfd_write(changed_.get(), 1); });
        return true;
    }

    Result<void> ready_watchdog() {
        // It may have waited for the lock as long as we did, and somebody may have killed it meanwhile.
        if (!watchdog_->is_alive()) {
            auto another = Watchdog::start(job_.grace);
            if (!another) return std::unexpected(another.error());
            *watchdog_ = std::move(*another);
        }
        strangers_.insert(watchdog_->pid());
        watchdog_->expect_family_of(job_.mark);
        return {};
    }

    /// There is no child, so there is nothing to hold for.
    bool give_up(Ending ending, std::optional<Error> error, std::optional<int> signal) {
        verdict_.ending = ending;
        verdict_.error = std::move(error);
        verdict_.signal = signal;
        if (group_ != nullptr) let_go();
        return false;
    }

    /// When the child has to go if nothing better is heard from the store.
    [[nodiscard]] Doom doom() const {
        if (group_ == nullptr) return {};
        const Boottime kill_at = group_->deadline() - kill_margin;
        return {kill_at - job_.grace, kill_at};
    }

    void foretell() {
        const Doom now = doom();
        if (watchdog_ == nullptr || now == foretold_) return;
        foretold_ = now;
        // A little later than ourselves: it stands in for us, and must not be quicker when we are only busy.
        watchdog_->expect({now.term_at + job_.grace / 4, now.kill_at});
    }

    void wait_and_serve() {
        foretell();
        const milliseconds nap = renewing_ ? patience() : std::min(patience(), short_life);
        std::array ready{pollfd{signals_.descriptor(), POLLIN, 0}, pollfd{changed_.get(), POLLIN, 0}};
        poll(ready.data(), ready.size(), static_cast<int>(nap.count()));
        eventfd_t ignored = 0;
        eventfd_read(changed_.get(), &ignored);
        while (const auto signal = signals_.next()) on_signal(*signal);
        reap();
        if (child_ended_) return;
        keep_renewing();
        end_in_time();
    }

    /// A thread that cannot be had now is asked for again; without one the child is ended in time.
    void keep_renewing() {
        if (renewing_) return;
        auto started = group_ == nullptr ? Result<void>{} : group_->start_renewing();
        renewing_ = started.has_value();
        not_renewing_because_ = renewing_ ? std::nullopt : std::optional(started.error());
    }

    /// Why the lease is about to run out.
    [[nodiscard]] Error reason_of_expiry() const {
        if (!not_renewing_because_) return group_->reason_of_expiry();
        return {Errc::lock_expired, "the lease could not be renewed in time: " + not_renewing_because_->message};
    }

    /// How long to sleep. Half of what is left before something must happen, so that a renewal in the
    /// meantime is passed on to the watchdog in time, and at most a second: poll does not count suspended time.
    [[nodiscard]] milliseconds patience() const {
        if (killed_) return milliseconds{5};
        const Boottime next = warned_ ? std::min(foretold_.kill_at, kill_at_) : foretold_.term_at;
        return std::clamp((next - clock_.boottime()) / 2, milliseconds{2}, milliseconds{1000});
    }

    /// Ends the child before the lease can be taken by another, or at once when it has been.
    void end_in_time() {
        if (group_ == nullptr) return;
        const Boottime now = clock_.boottime();
        const auto loss = group_->loss();
        const Doom fate = doom();
        if (!warned_ && (loss || now >= fate.term_at)) {
            warned_ = true;
            kill_at_ = now + job_.grace;
            lost_because_ = loss ? *loss : reason_of_expiry();
            signal_family(SIGTERM);
            signal_family(SIGCONT);  // A stopped process hears of SIGTERM only when it goes on.
        }
        if (warned_ && now >= std::min(fate.kill_at, kill_at_)) {
            killed_ = true;
            signal_family(SIGKILL);
        }
    }

    void on_signal(int signal) {
        if (signal == SIGCHLD || signal == SIGTTIN || signal == SIGTTOU) return;
        // Who asks a second time means it.
        if ((signal == SIGTERM || signal == SIGINT) && stop_requests_++ > 0) signal = SIGKILL;
        if (signal == SIGCONT && !child_ended_) give_terminal();
        kill(-child_, signal);
        // A stopped process hears of it only when it goes on; one in a group of its own, of what its parent makes of
        // it.
        if (is_stop_signal(signal)) signal_family(SIGCONT);
    }

    void signal_family(int signal) {
        kill(-child_, signal);
        for (const Relative& relative : descendants(strangers_))
            if (kill(relative.pid, signal) != 0 && errno == EPERM && warned_) cannot_end(relative);
    }

    /// It became another user, by sudo or a setuid program.
    void cannot_end(const Relative& relative) {
        const auto is_same = [&](const Relative& other) { return other.pid == relative.pid; };
        if (std::ranges::any_of(verdict_.out_of_reach, is_same)) return;
        verdict_.out_of_reach.push_back(relative);
        if (job_.notice)
            job_.notice(fmt::format("cannot end {} (pid {}), which runs as another user: it goes on without the lock",
                                    relative.name, relative.pid));
    }

    [[nodiscard]] bool only_those_out_of_reach_are_left() const {
        const auto left = descendants(strangers_);
        return !left.empty() && std::ranges::all_of(left, [&](const Relative& relative) {
            return std::ranges::find(verdict_.out_of_reach, relative.pid, &Relative::pid) !=
                   verdict_.out_of_reach.end();
        });
    }

    void reap() {
        siginfo_t info{};
        // Looked at first, reaped afterwards: as long as it is a zombie its number cannot mean a stranger.
        while (info.si_pid = 0,
               waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
            const bool ended = info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED;
            if (info.si_pid == child_ && ended && watchdog_ != nullptr) watchdog_->reaping();
            int status = 0;
            if (waitpid(info.si_pid, &status, WUNTRACED) != info.si_pid) continue;
            if (info.si_pid != child_) continue;
            if (ended) on_child_end(status);
            if (!ended) on_child_stop();
        }
    }

    void on_child_stop() const {
        take_terminal_back();
        // Not stopping with it: somebody has to renew, or the child would be ended for it.
        if (terminal_ >= 0 && job_.notice)
            job_.notice(fmt::format("stopped, and still holding; go on with: kill -CONT {}", getpid()));
    }

    void on_child_end(int status) {
        child_ended_ = true;
        // We slept beyond what the watchdog was told, so it was the watchdog that ended the child, or might have.
        if (group_ != nullptr && !lost_because_ && clock_.boottime() >= foretold_.term_at)
            lost_because_ = Error{Errc::lock_expired, "holdfast was stopped for too long to renew the lease in time"};
        if (WIFEXITED(status)) verdict_.code = WEXITSTATUS(status);
        if (WIFSIGNALED(status)) verdict_.signal = WTERMSIG(status);
    }

    /// The child is gone. Releases when everybody it started is gone too.
    void settle() {
        const bool lost = lost_because_.has_value();
        verdict_.ending = lost ? Ending::lost : Ending::child_exit;
        if (lost) {
            end_the_rest();
            if (warned_) verdict_.margin = group_->deadline() - clock_.boottime();
        }
        if (group_ == nullptr) return;
        if (!lost) wait_for_the_rest();
        if (!visible_ && verdict_.left_over.empty()) wait_for_the_unseen();
        let_go();
        if (lost) verdict_.error = lost_because_;
        // Asked again now that the store may have told who took the lock.
        if (const auto told = group_->loss(); lost && told && told->code == Errc::lock_not_held) verdict_.error = told;
    }

    /// Nobody is left to watch, or nobody who could be ended. The watchdog goes while the store is told.
    void let_go() {
        watchdog_->dismiss();
        if (!verdict_.left_over.empty()) {
            group_->abandon();
        } else if (auto released = group_->release(); !released && !verdict_.error) {
            verdict_.error = released.error();
        }
        watchdog_->join();
    }

    [[nodiscard]] bool anybody_left() const {
        return group_exists(child_) ||
               std::ranges::any_of(children(), [&](pid_t pid) { return !strangers_.contains(pid); });
    }

    void end_the_rest() {
        while (anybody_left()) {
            signal_family(SIGKILL);
            reap();
            if (only_those_out_of_reach_are_left()) {
                verdict_.left_over = verdict_.out_of_reach;
                return;
            }
            poll(nullptr, 0, 5);
        }
    }

    /// What the child left behind may be about to end. If it is not, it is named.
    void wait_for_the_rest() {
        if (!anybody_left()) return;
        if (group_exists(child_)) watchdog_->guard(child_);
        const Deadline enough = Deadline::in(clock_, job_.grace);
        while (anybody_left()) {
            keep_renewing();
            foretell();
            reap();
            const bool over = enough.passed(clock_) || group_->loss();
            if (over) {
                verdict_.left_over = visible_ ? descendants(strangers_) : somebody();
                if (!verdict_.left_over.empty()) return;
            }
            pollfd ready{signals_.descriptor(), POLLIN, 0};
            poll(&ready, 1, 10);
            while (const auto signal = signals_.next())
                if (group_exists(child_)) on_signal(*signal);
        }
    }

    /// Without /proc: a process that left the group can only be told by our having a child. The watchdog is one too,
    /// and goes first; it could not find such a process either.
    void wait_for_the_unseen() {
        watchdog_->dismiss();
        watchdog_->join();
        const Deadline enough = Deadline::in(clock_, job_.grace);
        while (has_children()) {
            reap();
            if (enough.passed(clock_) || group_->loss()) {
                if (has_children()) verdict_.left_over = somebody();
                return;
            }
            poll(nullptr, 0, 5);
        }
    }

    static std::vector<Relative> somebody() { return {{0, "processes that cannot be named without /proc"}}; }

    void give_terminal() const {
        if (terminal_ >= 0) tcsetpgrp(terminal_, child_);
    }
    void take_terminal_back() const {
        if (terminal_ >= 0) tcsetpgrp(terminal_, getpgrp());
    }

    const Job& job_;
    HoldGroup* const group_;
    Watchdog* const watchdog_;
    const Signals& signals_;
    const Clock& clock_;
    const int terminal_;
    const base::Fd changed_;  ///< Readable when a hold was lost.
    const bool visible_;      ///< Processes that left the group can be found.

    std::set<pid_t> strangers_;  ///< Children that are not the child's family.
    std::list<std::stop_callback<std::function<void()>>> loss_alarms_;
    Doom foretold_;
    pid_t child_ = 0;
    bool child_ended_ = false;
    bool renewing_ = false;
    std::optional<Error> not_renewing_because_;
    bool warned_ = false;
    bool killed_ = false;
    Boottime kill_at_ = Boottime::max();
    int stop_requests_ = 0;
    std::optional<Error> lost_because_;
    Verdict verdict_;
};

}  // namespace

Verdict supervise(const Job& job, Guarded* guarded, const Signals& signals, const Clock& clock) {
    return Supervisor(job, guarded, signals, clock).run();
}

milliseconds renew_interval(milliseconds ttl, milliseconds grace) {
    // Two tries must fit between a renewal and SIGTERM; a quarter of the lease is margin at the most.
    return std::max(std::min(ttl / 3, (ttl - ttl / 4 - grace - kill_margin) / 2), milliseconds{10});
}

}  // namespace holdfast::guards::run
