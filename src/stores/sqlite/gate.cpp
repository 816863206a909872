#include "stores/sqlite/gate.hpp"

#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::stores::sqlite {

Result<base::FileLock> Gate::enter(IfMissing if_missing, const Clock& clock, Deadline deadline) {
    while (true) {
        if (!file_) {
            if (auto opened = open_file(if_missing); !opened) return std::unexpected(opened.error());
        }
        {
            auto lock = base::FileLock::take(file_.get(), clock, deadline);
            // The file may have been deleted meanwhile; then another process may hold the lock on a new file.
            if (!lock || is_current()) return lock;
        }
        file_.reset();
    }
}

Result<void> Gate::open_file(IfMissing if_missing) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (if_missing == IfMissing::create ? O_CREAT : 0);
    base::Fd file(open(path_.c_str(), flags, 0600));
    if (!file) return std::unexpected(base::os_error(errno, "open " + path_));
    // Checked on the open descriptor: by now the name can belong to another file than the one that was looked at.
    const auto found = base::facts_of(file.get(), path_);
    if (!found) return std::unexpected(found.error());
    if (auto ours = base::expect_our_file(*found, path_); !ours) return ours;
    // Made just now under a umask that leaves no rights, by us or by a process that has not set the mode yet.
    if (if_missing == IfMissing::create && (found->mode & 0777) == 0)
        if (auto set = base::set_private_mode(path_, 0600); !set) return set;
    file_ = std::move(file);
    device_ = found->device;
    inode_ = found->inode;
    return {};
}

bool Gate::is_current() const {
    struct stat named{};
    return lstat(path_.c_str(), &named) == 0 && device_ == named.st_dev && inode_ == named.st_ino;
}

void Gate::touch() const {
    if (!file_) return;
    // Watchers are told that the file is read. Nothing is written: on file systems without a journal the next sync of
    // the log would also write the changed inode, in a request of its own. A file that has no byte yet gets one.
    char byte = '!';
    if (pread(file_.get(), &byte, 1, 0) == 0 && pwrite(file_.get(), &byte, 1, 0) != 1) return;
}

}  // namespace holdfast::stores::sqlite
