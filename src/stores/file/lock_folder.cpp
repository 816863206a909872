#include "stores/file/lock_folder.hpp"

#include "stores/file/audit_log.hpp"
#include "stores/file/name_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>

namespace holdfast::stores::file {
namespace {

const std::string guard_file = "guard";

/// What a lock's folder may contain before its first record is in place.
constexpr std::array<std::string_view, 4> before_first_use{"guard", "record.tmp", "queue", "bells"};

/// How many events stay inside the record. More make every write longer, fewer make moves more frequent.
constexpr std::size_t longest_tail = 16;

bool is_same_file(int fd, int folder, const std::string& name) {
    struct stat opened{};
    struct stat named{};
    return fstat(fd, &opened) == 0 && fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

Result<std::optional<LockFolder>> LockFolder::find(const Folder& locks, const std::string& name) {
    auto folder = locks.child(name);
    if (!folder) return std::unexpected(folder.error());
    if (!*folder) return std::nullopt;
    return LockFolder(name, std::move(**folder));
}

Result<LockFolder> LockFolder::make(const Folder& locks, const std::string& name) {
    auto folder = locks.made_child(name);
    if (!folder) return std::unexpected(folder.error());
    return LockFolder(name, std::move(*folder));
}

Result<Guard> LockFolder::take_guard(const Clock& clock, Deadline deadline) const {
    while (true) {
        auto fd = folder_.open_guard(guard_file);
        if (!fd) return std::unexpected(fd.error());
        auto lock = base::FileLock::take(fd->get(), clock, deadline);
        if (!lock) return std::unexpected(lock.error());
        // A tool that cleans up old files may have removed the guard while we waited for it. The next process makes a
        // new one, and a lock on the old one would exclude nobody.
        if (is_same_file(fd->get(), folder_.fd(), guard_file)) return Guard(std::move(*fd), std::move(*lock));
        if (deadline.passed(clock))
            return fail(Errc::store_unavailable, folder_.path_of(guard_file) + " keeps changing");
    }
}

Result<std::optional<SavedLock>> LockFolder::load() const {
    while (true) {
        auto bytes = folder_.read(record_file, longest_record);
        if (!bytes) return std::unexpected(bytes.error());
        if (*bytes) {
            auto saved = saved_lock_in(**bytes);
            if (!saved) return std::unexpected(corrupt(record_file, "cannot be read: it was cut or altered"));
            if (folder_name(saved->record.name) != name_)
                return std::unexpected(corrupt(record_file, "belongs to another lock"));
            return std::move(*saved);
        }
        const auto appeared = record_appeared();
        if (!appeared) return std::unexpected(appeared.error());
        if (!*appeared) return std::nullopt;
    }
}

/// Whether the record has appeared since it was looked for. False if there never was one.
Result<bool> LockFolder::record_appeared() const {
    const auto entries = folder_.entries();
    if (!entries) return std::unexpected(entries.error());
    if (std::ranges::find(*entries, record_file) != entries->end()) return true;
    for (const std::string& entry : *entries)
        if (std::ranges::find(before_first_use, entry) == before_first_use.end())
            return std::unexpected(corrupt(record_file, "is missing, although the lock was used before"));
    return false;
}

Result<SavedLock> LockFolder::save(const SavedLock& before, kernel::Record record,
                                   const std::vector<AuditEvent>& events, const kernel::ClockMark& mark,
                                   const Folder& locks) const {
    SavedLock next = before;
    const bool prunes = record.pruned_seq != before.record.pruned_seq;
    if (prunes)
        if (auto done = prune(folder_, next, record.pruned_seq); !done) return std::unexpected(done.error());
    next.record = std::move(record);
    next.saved_under = mark;
    // A record keeps its newest event, so without a new one nothing moves.
    if (!events.empty() && !next.tail.empty() && next.tail.size() + events.size() > longest_tail) {
        // Only events that are durable in the record already are moved, and they leave the record only when they are
        // durable in the log. A crash in between leaves them in both places, and the record's audit_bytes says which
        // copy counts; the next move writes the same bytes again.
        if (auto done = move_tail(folder_, next); !done) return std::unexpected(done.error());
    }
    std::ranges::copy_if(events, std::back_inserter(next.tail),
                         [&](const AuditEvent& event) { return event.seq > next.record.pruned_seq; });
    // The process that made the folders of this lock and of all locks may not have synced them yet, so the first record
    // does.
    if (before.record.seq == 0)
        if (auto synced = locks.sync_with_parent(); !synced) return std::unexpected(synced.error());
    if (auto done = folder_.replace(record_file, to_file(next)); !done) return std::unexpected(done.error());
    if (prunes) remove_unused_parts(folder_, next.record.pruned_seq);
    return next;
}

Result<std::vector<AuditEvent>> LockFolder::events_of(const SavedLock& saved, const HistoryQuery& query) const {
    auto events = read_events(folder_, saved, query);
    if (events || events.error().code != Errc::audit_chain_broken) return events;
    // Events that the record counts may have been pruned since it was read.
    const auto later = load();
    if (!later) return std::unexpected(later.error());
    if (!*later || (*later)->record.pruned_seq <= saved.record.pruned_seq) return events;
    return events_of(**later, query);
}

Error LockFolder::corrupt(const std::string& file, std::string_view what) const {
    return {Errc::record_corrupt,
            fmt::format("{} {}; the lock stays blocked until that is repaired", folder_.path_of(file), what)};
}

}  // namespace holdfast::stores::file
