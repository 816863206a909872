#include "guards/run/supervisor.hpp"

#include "base/os_error.hpp"
#include "guards/run/spawn.hpp"
#include "guards/run/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <list>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

using std::chrono::milliseconds;

/// So long before the deadline comes SIGKILL, which must have done its work by then. On a host that is busy this
/// process can be given a processor late, and a command with a long grace can spare more for that.
milliseconds kill_margin(milliseconds grace) { return std::clamp(grace / 3, milliseconds{50}, milliseconds{1000}); }

/// A child that has run this long is worth a thread that renews.
constexpr milliseconds short_life{20};

/// When the child's processes get SIGTERM, and when SIGKILL, unless the lease is renewed first.
struct KillSchedule {
    Boottime term_at = Boottime::max();
    Boottime kill_at = Boottime::max();
};

/// How long processes that outlive the child may take to end before they are reported.
constexpr milliseconds about_to_end{500};

class Supervisor {
public:
    Supervisor(const Job& job, Guarded* guarded, const Signals& signals, const Clock& clock)
        : job_(job),
          group_(guarded == nullptr ? nullptr : &guarded->group),
          outer_(guarded == nullptr ? nullptr : &guarded->outer),
          signals_(signals),
          clock_(clock),
          terminal_(controlling_terminal()),
          caller_group_(outer_ == nullptr ? getpgrp() : outer_->caller_group()),
          changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          family_(job.notice) {}

    /// Without exceptions: one that left this function would let the holds give the lease back while the child goes on.
    Verdict run() noexcept {
        // The child's orphans become our children, so that none escapes when the lease is lost.
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        // Children from before this program (a shell can exec it) must be neither waited for nor ended.
        family_.look_below(getpid(), children());
        if (!family_.is_visible() && group_ != nullptr && job_.notice)
            job_.notice("warning: without /proc only the command's process group can be ended when the lease is lost");
        if (!start()) return std::move(verdict_);
        const auto is_gone = [this] { return child_ended_ || (is_out_of_reach() && kill(child_, 0) != 0); };
        while (!is_gone()) wait_and_serve();
        take_terminal_back();
        settle();
        return std::move(verdict_);
    }

private:
    bool start() {
        // A stop signal that came before the child does not start it any more.
        while (const auto signal = next_signal())
            if (is_stop_signal(*signal)) return give_up(Ending::interrupted, std::nullopt, signal);
        if (is_orphaned()) return give_up(Ending::interrupted, std::nullopt, SIGKILL);
        if (outer_ != nullptr) {
            announce_kill_schedule();
            outer_->begin(job_.grace, clock_.boottime());
        }
        const bool has_terminal = terminal_ >= 0 && tcgetpgrp(terminal_) == caller_group_;
        const std::vector<base::Fd> sessions = sessions_for_family();
        std::vector<int> inherited;
        for (const base::Fd& session : sessions) inherited.push_back(session.get());
        const Started started =
            spawn({job_.command, job_.environment, signals_.mask_before(), has_terminal ? terminal_ : -1,
                   outer_ != nullptr ? &outer_->state().group : nullptr, inherited,
                   group_ != nullptr ? kill_schedule().term_at : Boottime::max()});
        if (started.error != 0) {
            if (has_terminal) tcsetpgrp(terminal_, caller_group_);
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
        family_.set_group(child_);
        if (group_ != nullptr)
            for (const Hold& hold : group_->holds())
                loss_alarms_.emplace_back(hold.lost(), [this] { eventfd_write(changed_.get(), 1); });
        return true;
    }

    /// Of the outer process, and of our own.
    std::optional<int> next_signal() {
        if (outer_ != nullptr)
            if (const auto signal = outer_->next()) return signal;
        return signals_.next();
    }

    [[nodiscard]] bool is_orphaned() const { return outer_ != nullptr && outer_->is_broken(); }

    /// There is no child, so there is nothing to hold for.
    bool give_up(Ending ending, std::optional<Error> error, std::optional<int> signal) {
        verdict_.ending = ending;
        verdict_.error = std::move(error);
        verdict_.signal = signal;
        if (group_ != nullptr) let_go();
        return false;
    }

    /// When the child has to end if no renewal succeeds from now on.
    [[nodiscard]] KillSchedule kill_schedule() const {
        if (group_ == nullptr) return {};
        const Boottime kill_at = group_->deadline() - kill_margin(job_.grace);
        return {kill_at - job_.grace, kill_at};
    }

    void announce_kill_schedule() {
        const Boottime before = announced_.kill_at;
        announced_ = kill_schedule();
        if (outer_ == nullptr || announced_.kill_at == before) return;
        outer_->expect(announced_.kill_at);
        share_sessions();
    }

    /// Where a lease ends with a locked file, the descendants of the command have that file as well: then the lease
    /// lives on although both of our processes were killed. A connection to a server is for nobody but us.
    [[nodiscard]] std::vector<base::Fd> sessions_for_family() const {
        std::vector<base::Fd> sessions;
        if (group_ == nullptr) return sessions;
        for (const Hold& hold : group_->holds()) {
            base::Fd session(hold.store().duplicate_session().value_or(-1));
            struct stat file{};
            if (session && fstat(session.get(), &file) == 0 && S_ISREG(file.st_mode))
                sessions.push_back(std::move(session));
        }
        return sessions;
    }

    /// A lease that ends with a connection would end with us, while the outer process still ends the family. So it has
    /// the connection too. A new one after each renewal, because the store may have connected again.
    void share_sessions() const {
        std::uint8_t place = 0;
        for (const Hold& hold : group_->holds())
            if (const auto copy = hold.store().duplicate_session()) {
                const base::Fd closed_here(*copy);
                outer_->keep_open(place++, *copy);
            }
    }

    void wait_and_serve() {
        announce_kill_schedule();
        const milliseconds nap = renewing_ ? patience() : std::min(patience(), short_life);
        std::array ready{pollfd{signals_.descriptor(), POLLIN, 0}, pollfd{changed_.get(), POLLIN, 0},
                         pollfd{outer_ != nullptr ? outer_->descriptor() : -1, POLLIN, 0}};
        poll(ready.data(), ready.size(), static_cast<int>(nap.count()));
        eventfd_t ignored = 0;
        eventfd_read(changed_.get(), &ignored);
        while (const auto signal = next_signal()) on_signal(*signal);
        const bool had_child = !child_ended_;
        reap();
        if (had_child && child_ended_) return;
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
    /// meantime is passed on to the outer process in time, and at most a second: poll does not count suspended time.
    [[nodiscard]] milliseconds patience() const {
        if (killed_at_) return clock_.boottime() < *killed_at_ + milliseconds{1000} ? milliseconds{5} : longest_nap_;
        const Boottime next = warned_ ? std::min(announced_.kill_at, kill_at_) : announced_.term_at;
        return std::clamp((next - clock_.boottime()) / 2, milliseconds{2}, longest_nap_);
    }

    /// Ends the child before the lease can be taken over, or at once if it has been. Also when the outer process died,
    /// because then no caller waits for the command.
    void end_in_time() {
        if (group_ == nullptr || is_leaving_behind()) return;
        const Boottime now = clock_.boottime();
        const auto loss = group_->loss();
        const KillSchedule schedule = kill_schedule();
        if (!lost_because_ && (loss || now >= schedule.term_at)) lost_because_ = loss ? *loss : reason_of_expiry();
        if (lost_because_) outer_->state().ending = true;
        if (!warned_ && (lost_because_ || is_orphaned())) {
            warned_ = true;
            kill_at_ = std::min(kill_at_, now + job_.grace);
            if (!lost_because_ && job_.notice)
                job_.notice("the process that was waited for was killed: ending the command");
            family_.tell_to_end();
        }
        if (warned_ && now >= std::min(schedule.kill_at, kill_at_)) {
            if (!killed_at_) killed_at_ = now;
            family_.kill();
        }
    }

    void on_signal(int signal) {
        if (signal == SIGCHLD || signal == SIGTTIN || signal == SIGTTOU) return;
        // The second request to stop ends the processes at once.
        if ((signal == SIGTERM || signal == SIGINT) && stop_requests_++ > 0) signal = SIGKILL;
        if (is_stop_signal(signal)) stop_request_ = signal;
        // After the end of the child only this process can pass a signal on to the others.
        if (child_ended_ || signal == SIGKILL) {
            family_.signal(signal);
        } else {
            if (signal == SIGCONT) give_terminal();
            kill(-child_, signal);
        }
        // A stopped process hears of it only when it goes on; one in a group of its own, of what its parent makes of
        // it.
        if (is_stop_signal(signal)) family_.signal(SIGCONT);
    }

    void reap() {
        siginfo_t info{};
        // Read the status first and reap afterwards: while the child is a zombie, no other process can get its pid.
        while (info.si_pid = 0,
               waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
            const bool ended = info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED;
            if (info.si_pid == child_ && ended) child_is_reaped(info);
            int status = 0;
            if (waitpid(info.si_pid, &status, WUNTRACED) != info.si_pid) continue;
            if (info.si_pid != child_) continue;
            if (ended) on_child_end(status);
            if (!ended) on_child_stop(WSTOPSIG(status));
        }
    }

    /// The child's pid is about to become free for another process. Its process group can outlive it, and is found
    /// through its members.
    void child_is_reaped(const siginfo_t& info) {
        family_.set_group(0);
        if (outer_ == nullptr) return;
        outer_->state().child_status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
        outer_->state().group = 0;
    }

    void on_child_stop(int signal) {
        if (terminal_ < 0) return;
        const pid_t foreground = tcgetpgrp(terminal_);
        const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
        if (wants_terminal && foreground == caller_group_) {
            // The caller was brought to the foreground meanwhile.
            give_terminal();
            kill(-child_, SIGCONT);
            return;
        }
        if (foreground != child_ && !wants_terminal && signal != SIGTSTP) return;
        take_terminal_back();
        // We do not stop with it: somebody has to renew, or the child would be ended for it.
        if (outer_ != nullptr) return outer_->command_was_stopped();
        stop_like_the_terminal(0);
    }

    void on_child_end(int status) {
        child_ended_ = true;
        // We slept beyond what the outer process was told, so it was that which ended the child, or might have.
        if (group_ != nullptr && !lost_because_ && clock_.boottime() >= announced_.kill_at - job_.grace * 3 / 4)
            lost_because_ = Error{Errc::lock_expired, "holdfast was stopped for too long to renew the lease in time"};
        // Without /proc only the members of the group can be found.
        if (!family_.is_visible() && kill(-child_, 0) == 0) {
            family_.set_group(child_);
            if (outer_ != nullptr) outer_->state().group = child_;
        }
        // It was meant for all of them, and the child cannot pass it on any more.
        if (stop_request_ && group_ != nullptr && !job_.leave_behind) family_.signal(*stop_request_);
        // What the child started had the same warning.
        if (lost_because_) kill_at_ = clock_.boottime();
        verdict_.set_status(status);
    }

    /// The child is gone. Releases when everybody it started is gone too.
    void settle() {
        verdict_.ending = Ending::child_exit;
        if (group_ == nullptr) return;
        wait_for_the_rest();
        if (lost_because_) verdict_.ending = Ending::lost;
        if (lost_because_ && warned_) verdict_.margin = group_->deadline() - clock_.boottime();
        verdict_.out_of_reach = family_.out_of_reach();
        let_go();
        if (!lost_because_) return;
        verdict_.error = lost_because_;
        // Asked again: the failed release may have told which lease is there now.
        if (const auto told = group_->loss(); told && told->code == Errc::lock_not_held) verdict_.error = told;
    }

    /// No process is left to watch, or none that could be ended.
    void let_go() {
        outer_->state().phase = ChainState::Phase::done;
        if (!verdict_.left_over.empty()) {
            group_->abandon();
        } else if (auto released = group_->release(); !released && !verdict_.error) {
            verdict_.error = released.error();
        }
    }

    /// The lease is held for the processes that outlive the child, as it was for the child.
    void wait_for_the_rest() {
        const Boottime since = clock_.boottime();
        bool named = false;
        while (family_.is_left()) {
            const milliseconds waited = clock_.boottime() - since;
            if (is_leaving_behind() && (waited >= job_.grace || group_->loss()) && leave_over(left())) return;
            if (is_out_of_reach()) {
                verdict_.left_over = family_.left();
                return;
            }
            if (!named && !warned_ && !is_leaving_behind() && waited >= about_to_end) {
                named = true;
                name_the_rest();
            }
            longest_nap_ = milliseconds{named ? 1000 : 20};
            wait_and_serve();
        }
    }

    /// The lease is lost, and all that is left is what SIGKILL did not reach. To wait for it could be to wait for ever.
    [[nodiscard]] bool is_out_of_reach() const {
        return lost_because_ && killed_at_ && clock_.boottime() >= *killed_at_ + kill_margin(job_.grace) &&
               family_.is_out_of_reach();
    }

    /// The child has ended, and the processes that outlive it are left running.
    [[nodiscard]] bool is_leaving_behind() const {
        return job_.leave_behind && child_ended_ && !warned_ && !lost_because_;
    }

    /// Without /proc a process is left that cannot be named; with it, no process in the list only has to be reaped.
    [[nodiscard]] std::vector<Relative> left() const {
        return family_.is_visible() ? family_.living() : family_.left();
    }

    /// False if there are none: they have ended and only have to be reaped.
    bool leave_over(std::vector<Relative> relatives) {
        verdict_.left_over = std::move(relatives);
        return !verdict_.left_over.empty();
    }

    void name_the_rest() const {
        const auto relatives = left();
        if (relatives.empty() || !job_.notice) return;
        job_.notice(
            fmt::format("the command has ended, but still running: {}; the lock is held until they end "
                        "(--leave-behind lets it run out instead)",
                        names_of(relatives)));
    }

    void give_terminal() const {
        if (terminal_ >= 0 && tcgetpgrp(terminal_) == caller_group_) tcsetpgrp(terminal_, child_);
    }
    /// Takes the terminal only if the child has it. If we were put in the background meanwhile, the shell has it and
    /// keeps it.
    void take_terminal_back() const {
        if (terminal_ >= 0 && tcgetpgrp(terminal_) == child_) tcsetpgrp(terminal_, caller_group_);
    }

    const Job& job_;
    HoldGroup* const group_;
    OuterLink* const outer_;
    const Signals& signals_;
    const Clock& clock_;
    const int terminal_;
    const pid_t caller_group_;  ///< The group that has the terminal when the child has not.
    const base::Fd changed_;    ///< Readable after a hold was lost.

    Family family_;
    std::list<std::stop_callback<std::function<void()>>> loss_alarms_;
    KillSchedule announced_;
    pid_t child_ = 0;
    bool child_ended_ = false;
    bool renewing_ = false;
    std::optional<Error> not_renewing_because_;
    milliseconds longest_nap_{1000};
    bool warned_ = false;
    std::optional<Boottime> killed_at_;
    Boottime kill_at_ = Boottime::max();
    int stop_requests_ = 0;
    std::optional<int> stop_request_;  ///< The last stop signal.
    std::optional<Error> lost_because_;
    Verdict verdict_;
};

}  // namespace

void Verdict::set_status(int status) {
    code = WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
    signal = WIFSIGNALED(status) ? std::optional(WTERMSIG(status)) : std::nullopt;
}

Verdict supervise(const Job& job, Guarded* guarded, const Signals& signals, const Clock& clock) {
    return Supervisor(job, guarded, signals, clock).run();
}

milliseconds renew_interval(milliseconds ttl, milliseconds grace) {
    // Two tries must fit between a renewal and SIGTERM; a quarter of the lease is margin at the most.
    return std::max(std::min(ttl / 3, (ttl - ttl / 4 - grace - kill_margin(grace)) / 2), milliseconds{10});
}

}  // namespace holdfast::guards::run
