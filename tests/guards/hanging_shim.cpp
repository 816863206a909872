// Preloaded into `holdfast run`: once the file that HANGS_WHEN names is there, a store that wants to sync never comes
// back, as on a file server that is gone.
#include <cstdlib>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int fsync(int file) {
    const char* const when = std::getenv("HANGS_WHEN");
    while (when != nullptr && access(when, F_OK) == 0) pause();
    return static_cast<int>(syscall(SYS_fsync, file));
}
