#include "stores/file/read.hpp"

#include "kernel/step.hpp"
#include "stores/common/query.hpp"
#include "stores/file/listing.hpp"
#include "stores/file/lock_folder.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/file/ticket_queue.hpp"

#include <algorithm>

namespace holdfast::stores::file {
namespace {

enum class More { no, yes };

/// Visits the locks that have a record, in the order of their names, until it is told that no more are wanted. Where a
/// record cannot be read, it calls `damaged` with the name of the folder.
template <class Visit, class Damaged>
Result<void> for_each_lock(const Folder& locks, const NameRange& range, const Clock& clock, Deadline deadline,
                           const Visit& visit, const Damaged& damaged) {
    const auto folders = folders_of(locks, range, clock, deadline);
    if (!folders) return std::unexpected(folders.error());
    for (const std::string& folder : *folders) {
        if (deadline.passed(clock)) return std::unexpected(out_of_time());
        const auto opened = LockFolder::find(locks, folder);
        if (!opened) return std::unexpected(opened.error());
        if (!*opened) continue;
        const auto saved = (*opened)->load();
        if (saved && !*saved) continue;
        const Result<More> visited = saved ? visit(**opened, **saved) : damaged(folder, saved.error());
        if (!visited) return std::unexpected(visited.error());
        if (*visited == More::no) break;
    }
    return {};
}

Result<std::vector<AuditEvent>> history_of_one(const Folder& locks, const HistoryQuery& query) {
    const auto lock = LockFolder::find(locks, folder_name(*query.name));
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return std::vector<AuditEvent>{};
    const auto saved = (*lock)->load();
    if (!saved) return std::unexpected(saved.error());
    return *saved ? (*lock)->events_of(**saved, query) : std::vector<AuditEvent>{};
}

}  // namespace

Result<LockStatus> read_status(const std::optional<Folder>& locks, const Bonds& bonds, const LockName& name,
                               const Clock& clock) {
    const auto lock = locks ? LockFolder::find(*locks, folder_name(name)) : Result<std::optional<LockFolder>>();
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return kernel::status_of(kernel::blank(name), 0, clock.wall());
    const auto saved = (*lock)->load();
    if (!saved) return std::unexpected(saved.error());
    return status_of((*lock)->folder(), *saved ? **saved : SavedLock{kernel::blank(name), {}, 0, {}}, bonds, clock);
}

Result<std::vector<LockStatus>> read_list(const Folder& locks, const Bonds& bonds, const ListQuery& query,
                                          const Clock& clock, Deadline deadline) {
    std::vector<LockStatus> found;
    const auto add = [&](const LockFolder& lock, const SavedLock& saved) -> Result<More> {
        if (query.limit && found.size() >= *query.limit) return More::no;
        if (!is_selected(query, saved.record)) return More::yes;
        auto status = status_of(lock.folder(), saved, bonds, clock);
        const bool is_damaged = !status && status.error().code == Errc::record_corrupt;
        if (is_damaged && query.with_unreadable) status = kernel::unreadable_status(saved.record.name, clock.wall());
        if (!status) return std::unexpected(status.error());
        found.push_back(std::move(*status));
        return More::yes;
    };
    const auto add_damaged = [&](const std::string& folder, const Error& why) -> Result<More> {
        const auto name = LockName::parse(name_in(folder).value_or(""));
        if (!query.with_unreadable || !name || why.code != Errc::record_corrupt) return std::unexpected(why);
        if (query.limit && found.size() >= *query.limit) return More::no;
        found.push_back(kernel::unreadable_status(*name, clock.wall()));
        return More::yes;
    };
    const auto done = for_each_lock(locks, {query.prefix, query.after}, clock, deadline, add, add_damaged);
    if (!done) return std::unexpected(done.error());
    return found;
}

Result<std::vector<AuditEvent>> read_history(const Folder& locks, const HistoryQuery& query, const Clock& clock,
                                             Deadline deadline) {
    if (query.name) return history_of_one(locks, query);
    std::vector<AuditEvent> found;
    const auto add = [&](const LockFolder& lock, const SavedLock& saved) -> Result<More> {
        auto events = lock.events_of(saved, {.since = query.since});
        if (!events) return std::unexpected(events.error());
        std::ranges::move(*events, std::back_inserter(found));
        return More::yes;
    };
    const auto give_up = [](const std::string&, const Error& why) -> Result<More> { return std::unexpected(why); };
    if (auto done = for_each_lock(locks, {}, clock, deadline, add, give_up); !done)
        return std::unexpected(done.error());
    sort_by_time(found);
    cut_to_limit(found, query);
    return found;
}

}  // namespace holdfast::stores::file
