#pragma once

#include "base/fd.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

/// Shows the processes of one host that one of them has died. A process keeps a file locked as long as it lives. A
/// ticket or a lease that must end with the process has a hard link to that file. The kernel frees the lock however the
/// process ends, and processes in other pid namespaces see that, too.
namespace holdfast::base {

/// A place in a queue, or a lease of a store with `?session=on`, that ends with its process.
enum class Bond { ticket, session };

/// The folder with the files of all processes that use a store.
///
/// Without its file, a ticket or a lease lasts until its time is over. So removing a file is always safe, and failures
/// here are not reported.
class Presences {
public:
    /// Whether every process that reaches the folder sees the same locks. Not on network file systems.
    enum class Locks { seen_by_all, not_trusted };

    Presences(std::string folder, Locks locks) : folder_(std::move(folder)), locks_(locks) {}

    /// True only if the process that bound `lock_id` is certainly dead. A process that was forked from it and still has
    /// its descriptors counts as alive.
    [[nodiscard]] bool is_gone(const LockId& lock_id, Bond bond) const;
    /// The path of the file, if there is one.
    [[nodiscard]] std::optional<std::string> find(const LockId& lock_id, Bond bond) const;
    /// Removes the link of a ticket or a lease that is over.
    void forget(const LockId& lock_id, Bond bond) const;

    [[nodiscard]] bool are_usable() const { return locks_ == Locks::seen_by_all; }
    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] std::string path_of(const LockId& lock_id, Bond bond) const;

private:
    std::string folder_;
    Locks locks_;
};

/// The file of one Store object, made when something is bound to it for the first time.
///
/// May be used from any thread. When it ends, sessions end with it; tickets do not, and last as long as their time. In
/// a process that was forked from the one that made the file, its end changes nothing.
class Presence {
public:
    explicit Presence(Presences presences) : presences_(std::move(presences)) {}
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;
    ~Presence();

    /// From now on `lock_id` ends with this process, and no longer with the one to which it was bound before. After an
    /// error nothing is bound.
    [[nodiscard]] Result<void> bind(const LockId& lock_id, Bond bond);

    /// A new descriptor of the locked file, for the caller to close: as long as it is open somewhere, this process
    /// counts as alive. Absent if nothing was ever bound, and while the file is in use. Never waits.
    [[nodiscard]] std::optional<int> duplicate() const;

    [[nodiscard]] const Presences& all() const { return presences_; }

private:
    struct File {
        Fd fd{};
        std::string path{};
        dev_t device = 0;
        ino_t inode = 0;
        pid_t made_by = 0;

        /// False if our descriptor was closed, or its number belongs to another file by now.
        [[nodiscard]] bool is_open() const;
        [[nodiscard]] bool is_named(const std::string& name) const;
    };

    [[nodiscard]] Result<void> link(const LockId& lock_id, Bond bond);
    [[nodiscard]] Result<void> make_file();
    [[nodiscard]] Result<void> make_folder() const;
    void let_go_of_tickets(const File& file) const;

    const Presences presences_;
    mutable std::mutex mutex_;
    std::vector<File> files_{};  ///< Guarded by mutex_. The last is in use; those before it have links of their own.
};

}  // namespace holdfast::base
