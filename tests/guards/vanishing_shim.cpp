// Preloaded into `holdfast run`: every process ends at the moment in which its environment is read, as far as who reads
// it can see. Otherwise that takes a race that hardly anybody wins.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

bool is_environment(int file) {
    std::array<char, 64> link{};
    std::array<char, 256> path{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link.data(), path.data(), path.size());
    const std::string_view name(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return name.starts_with("/proc/") && name.ends_with("/environ");
}

}  // namespace

extern "C" ssize_t read(int file, void* to, std::size_t size) {
    if (is_environment(file)) {
        errno = ESRCH;
        return -1;
    }
    return syscall(SYS_read, file, to, size);
}
