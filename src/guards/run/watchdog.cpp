#include "guards/run/watchdog.hpp"

#include "base/os_error.hpp"
#include "guards/run/family.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

using std::chrono::milliseconds;

/// The watchdog's own life. Its memory is a copy of the supervisor's, taken at a moment when other
/// threads may have held locks of the C library's allocator, which glibc makes safe after fork.
class Watch {
public:
    Watch(int pipe, milliseconds grace) : pipe_(pipe), grace_(grace) {}

    void run() {
        while (listen()) {
            const Boottime now = host_clock().boottime();
            if (now >= doom_.term_at && !warned_) warn();
            if (now >= doom_.kill_at) end_them();
        }
    }

private:
    /// False when there is nothing left to watch.
    bool listen() {
        pollfd ready{orphaned_ ? -1 : pipe_, POLLIN, 0};
        if (poll(&ready, 1, static_cast<int>(patience().count())) <= 0) return !(orphaned_ && is_over());
        WatchMessage message;
        const ssize_t got = read(pipe_, &message, sizeof message);
        if (got < 0) return errno == EINTR || errno == EAGAIN;
        if (got != static_cast<ssize_t>(sizeof message)) return supervisor_died();
        switch (message.kind) {
            case WatchMessage::Kind::done: return false;
            case WatchMessage::Kind::lease: mark_.assign(message.mark.begin(), message.mark.end()); break;
            case WatchMessage::Kind::child: group_ = message.group; break;
            case WatchMessage::Kind::reaping: group_ = 0; break;
            case WatchMessage::Kind::doom:
                doom_ = {Boottime{milliseconds{message.term_at_ms}}, Boottime{milliseconds{message.kill_at_ms}}};
                warned_ = false;
                break;
        }
        return true;
    }

    bool supervisor_died() {
        // There never was a lease, and so no child.
        if (mark_.empty()) return false;
        orphaned_ = true;
        // Nobody renews any more, so the work must end; politely at first, as far as the lease allows.
        const Boottime now = host_clock().boottime();
        doom_ = {now, std::min(doom_.kill_at, now + grace_)};
        warned_ = false;
        return !is_over();
    }

    /// Slices of a second, because poll does not count suspended time, and short ones near the end.
    [[nodiscard]] milliseconds patience() const {
        const Boottime now = host_clock().boottime();
        const Boottime next = warned_ ? doom_.kill_at : std::min(doom_.term_at, doom_.kill_at);
        if (orphaned_ || killed_) return milliseconds{20};
        return std::clamp(next > now ? next - now : milliseconds{0}, milliseconds{0}, milliseconds{1000});
    }

    void warn() {
        warned_ = true;
        signal_all(SIGTERM);
        signal_all(SIGCONT);  // A stopped process hears of SIGTERM only when it goes on.
    }

    void end_them() {
        killed_ = true;
        signal_all(SIGKILL);
    }

    void signal_all(int signal) const {
        if (group_ != 0) kill(-group_, signal);
        for (const Relative& relative : marked_with(mark_)) kill(relative.pid, signal);
    }

    [[nodiscard]] bool is_over() const { return (group_ == 0 || !group_exists(group_)) && marked_with(mark_).empty(); }

    const int pipe_;
    const milliseconds grace_;
    std::string mark_;
    pid_t group_ = 0;
    Doom doom_;
    bool warned_ = false;
    bool killed_ = false;
    bool orphaned_ = false;
};

/// Without exceptions: one that left this process's first function would unwind the supervisor's, and the holds there
/// would give the lease back while the child goes on.
[[noreturn]] void live_as_watchdog(int pipe, milliseconds grace) noexcept {
    // A session of its own: no terminal's Ctrl-C or hang-up reaches it. All signals stay blocked as they
    // were in the supervisor, which blocks those that can be.
    setsid();
    prctl(PR_SET_NAME, "holdfast-watch");
    // Nothing of the supervisor may stay open here: a pipe that a script reads to its end, or a lock of the
    // store that must go when the supervisor does.
    dup2(pipe, 3);
    for (const int standard : {0, 1, 2}) close(standard);
    close_range(4, ~0U, 0);
    Watch(3, grace).run();
    _exit(0);
}

}  // namespace

Result<Watchdog> Watchdog::start(milliseconds grace) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(base::os_error(errno, "make a pipe"));
    base::Fd reader(ends[0]);
    base::Fd writer(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) return std::unexpected(base::os_error(errno, "start the watchdog"));
    if (pid == 0) {
        writer.reset();
        live_as_watchdog(reader.get(), grace);
    }
    return Watchdog(pid, std::move(writer));
}

Watchdog& Watchdog::operator=(Watchdog&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(pipe_, other.pipe_);
    return *this;
}

Watchdog::~Watchdog() {
    if (pid_ < 0) return;
    dismiss();
    join();
}

bool Watchdog::is_alive() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void Watchdog::send(const WatchMessage& message) const {
    // A watchdog that was killed cannot be told anything. The supervisor goes on without: it still does the
    // same by itself. SIGPIPE is blocked by the supervisor.
    while (write(pipe_.get(), &message, sizeof message) < 0 && errno == EINTR) {
    }
}

void Watchdog::expect_family_of(std::string_view mark) const {
    WatchMessage message{.kind = WatchMessage::Kind::lease};
    std::ranges::copy_n(mark.begin(), std::ssize(message.mark), message.mark.begin());
    send(message);
}

void Watchdog::expect(const Doom& doom) const {
    send({.kind = WatchMessage::Kind::doom,
          .term_at_ms = doom.term_at.time_since_epoch().count(),
          .kill_at_ms = doom.kill_at.time_since_epoch().count()});
}

void Watchdog::reaping() const { send({.kind = WatchMessage::Kind::reaping}); }
void Watchdog::guard(pid_t group) const { send({.kind = WatchMessage::Kind::child, .group = group}); }

void Watchdog::dismiss() {
    if (!pipe_) return;
    send({.kind = WatchMessage::Kind::done});
    pipe_.reset();
}

void Watchdog::join() {
    if (pid_ < 0) return;
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

}  // namespace holdfast::guards::run
