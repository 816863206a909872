#include "guards/run/spawn.hpp"

#include "guards/run/watchdog.hpp"

#include <cerrno>
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
    volatile int error = 0;

    // vfork: the child runs on this stack until it execs, which starts it sooner than fork and lets it report
    // a failed exec through `error`. Until then it may only make system calls. Every signal is blocked, so
    // no handler of ours can run in it.
    const pid_t pid = vfork();
    if (pid < 0) return {-1, errno};
    if (pid == 0) {
        const pid_t self = getpid();
        setpgid(0, 0);
        if (launch.terminal >= 0) tcsetpgrp(launch.terminal, self);
        if (launch.announce >= 0) {
            // Told by the child itself, so that there is no moment at which it runs and nobody watches it.
            const WatchMessage message{WatchMessage::Kind::child, self, 0, 0};
            if (write(launch.announce, &message, sizeof message) < 0) {
                error = errno;
                _exit(127);
            }
        }
        // We ignore a closed pipe to report it; a program expects to be ended by it.
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &launch.signal_mask, nullptr);
        execvpe(argv[0], argv.data(), envp.data());
        error = errno;
        _exit(127);
    }
    if (error != 0) {
        while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        return {-1, error};
    }
    return {pid, 0};
}

}  // namespace holdfast::guards::run
