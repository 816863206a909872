#include "guards/worktree/freeze.hpp"

#include "base/os_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <poll.h>
#include <stop_token>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

using std::chrono::milliseconds;

/// What the keeper answers: the wait status of a command, and whether it waited to be asked.
struct Answer {
    int status = 0;
    bool was_asked = true;
};

constexpr char heartbeat = '.';
constexpr char thaw_now = 't';

// From here on: what the keeper does. It was forked from a process with threads, so it only makes system calls.

int run_command(const char* command) {
    const pid_t child = fork();
    if (child < 0) return 127 << 8;
    if (child == 0) {
        // Standard output may be the document of the caller.
        dup2(STDERR_FILENO, STDOUT_FILENO);
        for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT}) signal(number, SIG_DFL);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
        _exit(127);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// No other descriptor may live on here: not a lock, not a session, not the end of somebody's pipe.
void close_others(int kept) {
    if (kept > 3) syscall(SYS_close_range, 3U, static_cast<unsigned>(kept) - 1, 0U);
    if (syscall(SYS_close_range, static_cast<unsigned>(kept) + 1, ~0U, 0U) == 0) return;
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 ? most : 1024); ++fd)
        if (fd != kept) close(fd);
}

void tell(int link, const Answer& answer) {
    while (send(link, &answer, sizeof answer, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

[[noreturn]] void keep(int link, const char* freeze, const char* thaw, int grace_ms) {
    setsid();
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT}) signal(number, SIG_IGN);
    close_others(link);
    const int frozen = run_command(freeze);
    tell(link, {frozen, true});
    if (frozen != 0) _exit(0);
    bool was_asked = false;
    for (;;) {
        pollfd ready{link, POLLIN, 0};
        const int found = poll(&ready, 1, grace_ms);
        if (found < 0 && errno == EINTR) continue;
        if (found <= 0) break;
        char what = 0;
        const ssize_t got = recv(link, &what, 1, 0);
        if (got < 0 && errno == EINTR) continue;
        was_asked = got == 1 && what == thaw_now;
        if (got <= 0 || was_asked) break;
    }
    tell(link, {run_command(thaw), was_asked});
    _exit(0);
}

std::string ending_of(int status) {
    if (WIFEXITED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
    return fmt::format("was ended by signal {}", WTERMSIG(status));
}

}  // namespace

/// This process's side: the link, and a thread that says that the process lives.
class Freeze::Keeper {
public:
    Keeper(base::Fd link, pid_t pid, milliseconds grace) : link_(std::move(link)), pid_(pid) {
        beat_ = std::jthread([this, pause = std::max(grace / 5, milliseconds{1})](const std::stop_token& stop) {
            std::mutex mutex;
            std::condition_variable_any nobody;
            std::unique_lock lock(mutex);
            while (!nobody.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested())
                static_cast<void>(send(link_.get(), &heartbeat, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
        });
    }
    ~Keeper() {
        if (!is_thawed_) static_cast<void>(thaw());
    }
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;

    Result<void> thaw() {
        is_thawed_ = true;
        beat_ = {};
        static_cast<void>(send(link_.get(), &thaw_now, 1, MSG_NOSIGNAL));
        const auto answer = hear(link_.get());
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        if (!answer) return fail(Errc::consistency_unavailable, "the process that thaws ended without a word");
        if (!answer->was_asked)
            return fail(Errc::consistency_unavailable,
                        "the writers were let go before the snapshot was complete: it was stopped for too long");
        if (answer->status != 0)
            return fail(Errc::consistency_unavailable,
                        fmt::format("the command of --thaw {}; look whether the writers work again",
                                    ending_of(answer->status)));
        return {};
    }

    static std::optional<Answer> hear(int link) {
        Answer answer;
        for (;;) {
            const ssize_t got = recv(link, &answer, sizeof answer, 0);
            if (got < 0 && errno == EINTR) continue;
            if (got != ssize_t{sizeof answer}) return std::nullopt;
            return answer;
        }
    }

private:
    base::Fd link_;
    pid_t pid_;
    bool is_thawed_ = false;
    std::jthread beat_{};
};

Freeze::Freeze(std::unique_ptr<Keeper> keeper) : keeper_(std::move(keeper)) {}
Freeze::Freeze(Freeze&&) noexcept = default;
Freeze& Freeze::operator=(Freeze&&) noexcept = default;
Freeze::~Freeze() = default;

Result<Freeze> Freeze::begin(const Options& options) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return std::unexpected(base::os_error(errno, "start the process that thaws"));
    base::Fd ours(ends[0]);
    base::Fd theirs(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) return std::unexpected(base::os_error(errno, "start the process that thaws"));
    if (pid == 0)
        keep(theirs.get(), options.freeze.c_str(), options.thaw.c_str(), static_cast<int>(options.grace.count()));
    theirs.reset();
    const auto frozen = Keeper::hear(ours.get());
    if (frozen && frozen->status == 0) return Freeze(std::make_unique<Keeper>(std::move(ours), pid, options.grace));
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return fail(Errc::consistency_unavailable,
                fmt::format("the command of --freeze {}", frozen ? ending_of(frozen->status) : "was lost"));
}

Result<void> Freeze::thaw() { return keeper_->thaw(); }

}  // namespace holdfast::guards::worktree
