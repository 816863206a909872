#include "guards/run/spawn.hpp"

#include "base/fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
}

}  // namespace

Started spawn(const Launch& launch) {
    const auto argv = pointers(launch.command);
    const auto envp = pointers(launch.environment);
    // A failed start is reported through a pipe that a successful exec closes.
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return {-1, errno};
    const base::Fd report(ends[0]);
    base::Fd reporter(ends[1]);

    // vfork: the child runs on this stack until it execs, which starts it sooner than fork. Until then it may
    // only make system calls. Every signal is blocked, so no handler of ours can run in it. posix_spawn, which the
    // analyser prefers, can neither hand over the terminal nor announce the child before it runs.
    // NOLINTBEGIN(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork)
    const pid_t pid = vfork();
    if (pid < 0) return {-1, errno};
    if (pid == 0) {
        const pid_t self = getpid();
        setpgid(0, 0);
        if (launch.terminal >= 0) tcsetpgrp(launch.terminal, self);
        // Told by the child itself, so that there is no moment at which it runs and nobody watches it.
        if (launch.announce != nullptr) *launch.announce = self;
        // We ignore a closed pipe and a full file to report them; a program expects to be ended by them.
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        sigprocmask(SIG_SETMASK, &launch.signal_mask, nullptr);
        for (const int descriptor : launch.inherited) fcntl(descriptor, F_SETFD, 0);
        // The last look at the clock: this process may have been stopped since it was granted the lease, and a command
        // must not begin under a lease that is over.
        errno = ETIME;
        if (host_clock().boottime() < launch.start_before) execvpe(argv[0], argv.data(), envp.data());
        const int error = errno;
        if (write(ends[1], &error, sizeof error) < 0) _exit(126);
        _exit(127);
    }
    // NOLINTEND(bugprone-unsafe-functions,clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork)
    reporter.reset();
    int error = 0;
    if (read(report.get(), &error, sizeof error) != ssize_t{sizeof error}) return {pid, 0};
    if (launch.announce != nullptr) *launch.announce = 0;
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {-1, error};
}

}  // namespace holdfast::guards::run
