#pragma once

#include "base/fd.hpp"
#include "base/file_lock.hpp"

#include <string>
#include <sys/types.h>

namespace holdfast::stores::sqlite {

/// One writer at a time, among all processes: an open-file-description lock on a file beside the database.
///
/// Every write transaction and every checkpoint of ours runs inside it. SQLite has a lock for writers of its own, but
/// (1) a process that waits for it sleeps and tries again, and under load some processes wait for seconds; (2) before
/// 3.51.3 a commit during a checkpoint can reset the log wrongly and corrupt the database, and Debian 12 has 3.40.1.
/// Inside the gate neither can happen. SQLite's locks still protect the data against other tools, and if the gate's
/// file is deleted.
///
/// For one thread at a time: the store's mutex comes first.
class Gate {
public:
    enum class IfMissing { create, fail };

    explicit Gate(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] Result<base::FileLock> enter(IfMissing if_missing, const Clock& clock, Deadline deadline);

    /// Wakes processes that watch the gate's file, also for reads. Only a hint, so failures are not reported.
    void touch() const;

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    [[nodiscard]] Result<void> open_file(IfMissing if_missing);
    [[nodiscard]] bool is_current() const;

    std::string path_;
    base::Fd file_{};
    dev_t device_ = 0;  ///< Of file_.
    ino_t inode_ = 0;   ///< Of file_, and of no other as long as that is open.
};

}  // namespace holdfast::stores::sqlite
