#include "stores/sqlite/hints.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace holdfast::stores::sqlite {

Result<base::FileWatch> Hints::watch(const LockId& ticket) const {
    if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
        return std::unexpected(base::os_error(errno, "make " + folder_));
    const std::string path = path_of(ticket);
    base::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return std::unexpected(base::os_error(errno, "make " + path));
    // Closed before the watch begins, which would hear it.
    file.reset();
    return base::FileWatch::on(path);
}

void Hints::wake(const LockId& ticket) const {
    utimensat(AT_FDCWD, path_of(ticket).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

void Hints::forget(const LockId& ticket) const { unlink(path_of(ticket).c_str()); }

}  // namespace holdfast::stores::sqlite
