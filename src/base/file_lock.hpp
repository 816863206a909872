#pragma once

#include "base/fd.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

namespace holdfast::base {

/// Holds an exclusive open-file-description lock on a file for a short critical section.
///
/// Such a lock belongs to the descriptor: it is not dropped when another part of the process closes the
/// same file, as a POSIX lock is, and the kernel frees it when its owner dies. Two threads that share one
/// `fd` do not exclude each other; they need a mutex as well.
class FileLock {
public:
    /// Waits until `deadline`, then `store_unavailable`. `fd` must stay open as long as the lock lives.
    [[nodiscard]] static Result<FileLock> take(int fd, const Clock& clock, Deadline deadline);

    FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileLock& operator=(FileLock&&) = delete;
    ~FileLock();

private:
    explicit FileLock(int fd) : fd_(fd) {}
    int fd_;
};

}  // namespace holdfast::base
