#include "stores/sqlite/gate.hpp"

#include "base/os_error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace holdfast::stores::sqlite {

Result<base::FileLock> Gate::enter(IfMissing if_missing, const Clock& clock, Deadline deadline) {
    while (true) {
        if (!file_) {
            if (auto opened = open_file(if_missing); !opened) return std::unexpected(opened.error());
        }
        {
            auto lock = base::FileLock::take(file_.get(), clock, deadline);
            // The file may have been deleted meanwhile, and then somebody else may be in by another door.
            if (!lock || is_current()) return lock;
        }
        file_.reset();
    }
}

Result<void> Gate::open_file(IfMissing if_missing) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (if_missing == IfMissing::create ? O_CREAT : 0);
    base::Fd file(open(path_.c_str(), flags, 0600));
    if (!file) return std::unexpected(base::os_error(errno, "open " + path_));
    struct stat found{};
    if (fstat(file.get(), &found) != 0) return std::unexpected(base::os_error(errno, "look at " + path_));
    if (!S_ISREG(found.st_mode)) return fail(Errc::store_unsafe, path_ + " is not a plain file");
    file_ = std::move(file);
    device_ = found.st_dev;
    inode_ = found.st_ino;
    return {};
}

bool Gate::is_current() const {
    struct stat named{};
    return lstat(path_.c_str(), &named) == 0 && device_ == named.st_dev && inode_ == named.st_ino;
}

void Gate::touch() const {
    // Those who watch hear a file being closed that could have been written. Its inode stays as it is: without a
    // journal a changed one, be it only a time, goes to the disk with the next sync of the log, in a request of its own.
    const base::Fd closed_at_once(open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace holdfast::stores::sqlite
