#include "guards/run/terminal.hpp"

#include <cerrno>
#include <signal.h>
#include <unistd.h>

namespace holdfast::guards::run {

int controlling_terminal() {
    for (const int fd : {0, 1, 2})
        if (isatty(fd) != 0 && tcgetpgrp(fd) >= 0) return fd;
    return -1;
}

void take_terminal_from_the_dead(int terminal) {
    if (terminal < 0) return;
    const pid_t foreground = tcgetpgrp(terminal);
    if (foreground > 0 && kill(-foreground, 0) != 0 && errno == ESRCH) tcsetpgrp(terminal, getpgrp());
}

}  // namespace holdfast::guards::run
