#include "base/private_mode.hpp"

#include "base/os_error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace holdfast::base {

Result<void> set_private_mode(int parent, const std::string& name, mode_t mode, const std::string& shown) {
    struct stat made{};
    // Looked at first: to change a mode without following a link, the C library needs /proc.
    if (fstatat(parent, name.c_str(), &made, AT_SYMLINK_NOFOLLOW) == 0 && (made.st_mode & 07777) == mode) return {};
    if (fchmodat(parent, name.c_str(), mode, AT_SYMLINK_NOFOLLOW) == 0) return {};
    return std::unexpected(os_error(errno, "set the mode of " + shown));
}

Result<void> set_private_mode(const std::string& path, mode_t mode) {
    return set_private_mode(AT_FDCWD, path, mode, path);
}

}  // namespace holdfast::base
