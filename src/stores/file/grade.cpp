#include "stores/file/grade.hpp"

#include "base/os_error.hpp"
#include "kernel/rebase.hpp"
#include "stores/file/lock_folder.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/file/schema.hpp"
#include "stores/file/ticket_queue.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace holdfast::stores::file {
namespace {

constexpr std::size_t most_records = 100'000;

/// Reads a lock and the head of its queue as a change would, so that it reports exactly the locks that a change would
/// find unreadable.
Result<void> expect_usable(const Folder& locks, const std::string& name, const kernel::ClockMark& mark, Instant now) {
    const auto lock = LockFolder::find(locks, name);
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return {};
    if (const auto saved = (*lock)->load(); !saved) return std::unexpected(saved.error());
    auto queue = TicketQueue::load((*lock)->folder(), mark, now);
    if (!queue) return std::unexpected(queue.error());
    if (const auto head = queue->view(std::nullopt); !head) return std::unexpected(head.error());
    // Its guard as well: one that this user cannot write blocks the lock for this user.
    for (const std::string& path : {(*lock)->folder().path(), (*lock)->folder().path_of("guard")})
        if (faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno != ENOENT)
            return std::unexpected(base::os_error(errno, "write " + path));
    return {};
}

Finding records(const StoreFolder& store, const Clock& clock, Deadline deadline) {
    const auto locks = store.locks();
    if (!locks) return {"records", false, locks.error().message};
    if (!*locks) return {"records", true, "none yet"};
    const auto names = (*locks)->entries();
    if (!names) return {"records", false, names.error().message};
    const kernel::ClockMark mark = kernel::mark_of(clock);
    const Instant now = clock.wall();
    std::size_t read = 0;
    for (const std::string& name : *names) {
        if (read == most_records || deadline.passed(clock))
            return {"records", true, fmt::format("the first {} of {} can be read", read, names->size())};
        if (!is_folder_name(name)) return {"records", false, (*locks)->path_of(name) + " is not a lock's folder"};
        if (const auto usable = expect_usable(**locks, name, mark, now); !usable)
            return {"records", false, usable.error().message};
        ++read;
    }
    return {"records", true, fmt::format("all {} can be read", read)};
}

}  // namespace

std::vector<Finding> examine_store(const std::string& path, Sync sync, const base::Promise& promise, const Clock& clock,
                                   Deadline deadline) {
    std::vector<Finding> findings;
    findings.push_back({"file_system", promise.grade != Grade::c, promise.file_system});
    // Chosen by the URL, so no fault; the grade shows the price.
    findings.push_back({"sync", true, sync == Sync::on ? "every change is forced to the disk" : "off by sync=off"});
    const auto store = StoreFolder::find(path, sync);
    if (!store) {
        findings.push_back({"folder", false, store.error().message});
        return findings;
    }
    if (!*store) {
        findings.push_back({"folder", true, path + " is made by the first use"});
        findings.push_back(base::rights_to_write({path}));
        findings.push_back(base::free_space_in(path));
        return findings;
    }
    findings.push_back({"folder", true, path + " is ours, and others cannot write to it"});
    findings.push_back({"format", true,
                        ((*store)->is_old ? "version 1 (the first change makes it 2), store " : "version 2, store ") +
                            (*store)->store_id.text()});
    findings.push_back(base::rights_to_write({path, (*store)->dir.path_of("locks")}));
    findings.push_back(base::free_space_in(path));
    findings.push_back(records(**store, clock, deadline));
    return findings;
}

}  // namespace holdfast::stores::file
