#pragma once

#include "base/file_lock.hpp"
#include "kernel/record.hpp"
#include "stores/file/codec.hpp"
#include "stores/file/folder.hpp"

#include <optional>
#include <vector>

namespace holdfast::stores::file {

/// In the folder of a lock.
inline const std::string record_file = "record";

/// The right to change one lock: taken before its record is read, kept until it is written.
class Guard {
public:
    Guard(base::Fd fd, base::FileLock lock) : fd_(std::move(fd)), lock_(std::move(lock)) {}

private:
    base::Fd fd_;
    base::FileLock lock_;  ///< After `fd_`, because it must be destroyed before the descriptor is closed.
};

/// The files of one lock: `guard`, `record`, its audit log and the folders `queue` and `bells`.
class LockFolder {
public:
    /// The lock whose `folder_name` is `name`. Empty if nobody ever asked for it.
    [[nodiscard]] static Result<std::optional<LockFolder>> find(const Folder& locks, const std::string& name);
    [[nodiscard]] static Result<LockFolder> make(const Folder& locks, const std::string& name);

    /// Opens a new descriptor each time, so that threads exclude each other, too.
    [[nodiscard]] Result<Guard> take_guard(const Clock& clock, Deadline deadline) const;

    /// The record as it was saved last; empty if it never was. Needs no guard: records are replaced in one step.
    ///
    /// Anything that cannot be read, and a record that is missing although there was one, is
    /// `record_corrupt`: never a free lock.
    [[nodiscard]] Result<std::optional<SavedLock>> load() const;

    /// Saves the next state after `before`, together with the events that led to it and without those that it says
    /// are pruned. With the guard only.
    [[nodiscard]] Result<SavedLock> save(const SavedLock& before, kernel::Record record,
                                         const std::vector<AuditEvent>& events, const kernel::ClockMark& mark,
                                         const Folder& locks) const;

    /// The events of `saved`, or of a later record, that `query` selects, oldest first; `audit_chain_broken` if the
    /// log is damaged.
    [[nodiscard]] Result<std::vector<AuditEvent>> events_of(const SavedLock& saved, const HistoryQuery& query) const;

    [[nodiscard]] const Folder& folder() const { return folder_; }

private:
    LockFolder(std::string name, Folder folder) : name_(std::move(name)), folder_(std::move(folder)) {}
    [[nodiscard]] Result<bool> record_appeared() const;
    [[nodiscard]] Error corrupt(const std::string& file, std::string_view what) const;

    std::string name_;
    Folder folder_;
};

}  // namespace holdfast::stores::file
