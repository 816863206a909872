#include "torture/client/supervised.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

namespace torture {

using holdfast::base::Fd;

namespace {

/// Found before anything is mounted: in a chroot the kernel names it by another path after that.
const std::filesystem::path own_folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();

}  // namespace

std::string program(const std::string& name) { return (own_folder / name).string(); }

std::optional<int> run_and_wait(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(125);
        std::signal(SIGTERM, SIG_DFL);
        const int nowhere = open("/dev/null", O_RDWR);
        for (const int standard : {0, 1, 2}) dup2(nowhere, standard);
        close(nowhere);
        execv(arguments.front(), arguments.data());
        _exit(127);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    if (!WIFEXITED(status)) return std::nullopt;
    return WEXITSTATUS(status);
}

Fd sign_of_life(const std::string& file) {
    // Not closed by exec: this is what children inherit.
    Fd sign(open(file.c_str(), O_RDWR | O_CREAT, 0600));
    if (!sign || flock(sign.get(), LOCK_SH) != 0) throw std::system_error(errno, std::generic_category(), file);
    return sign;
}

bool anybody_lives(const std::string& file) {
    const Fd alone(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!alone) throw std::system_error(errno, std::generic_category(), file);
    return flock(alone.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace torture
