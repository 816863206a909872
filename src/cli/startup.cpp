#include "cli/startup.hpp"

#include "base/os_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

Result<void> occupy_standard_descriptors() {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
        // A path alone can be neither read nor written, and needs no /dev. The lowest free number is this one.
        if (open("/", O_PATH | O_CLOEXEC) != standard)
            return std::unexpected(base::os_error(errno, fmt::format("occupy the closed descriptor {}", standard)));
    }
    return {};
}

Result<void> expect_own_rights() {
    if (getuid() == geteuid() && getgid() == getegid()) return {};
    return fail(Errc::denied,
                fmt::format("holdfast was started by user {} with the rights of user {} and group {}: it is installed "
                            "setuid or setgid, which is refused; take that away with chmod u-s,g-s, and use sudo",
                            getuid(), geteuid(), getegid()));
}

}  // namespace

Result<void> prepare_process() {
    if (auto occupied = occupy_standard_descriptors(); !occupied) return occupied;
    // A closed pipe is noticed where we write, because a lease that nobody can read must be given back.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    return expect_own_rights();
}

}  // namespace holdfast::cli
