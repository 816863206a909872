#include "stores/file/examination.hpp"

#include "base/os_error.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/file/saved_lock.hpp"
#include "stores/file/store_folder.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <sys/statvfs.h>

namespace holdfast::stores::file {
namespace {

/// Enough for some hundred changes, each of which needs room for a second copy of its record.
constexpr std::uint64_t least_free_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t least_free_files = 100;

constexpr std::size_t most_records = 100'000;

Finding free_space(const Folder& dir) {
    struct statvfs info{};
    if (fstatvfs(dir.fd(), &info) != 0)
        return {"free_space", false, base::os_error(errno, "measure free space").message};
    const std::uint64_t bytes = info.f_bavail * info.f_frsize;
    // Some file systems make room for files as they come, and count none.
    const bool files_left = info.f_files == 0 || info.f_favail >= least_free_files;
    return {"free_space", bytes >= least_free_bytes && files_left,
            fmt::format("{} KiB and {} files left", bytes / 1024, info.f_favail)};
}

Result<bool> is_readable(const Folder& locks, const std::string& name) {
    const auto folder = locks.child(name);
    if (!folder) return std::unexpected(folder.error());
    if (!*folder) return true;
    const auto bytes = (*folder)->read("record", longest_record);
    if (!bytes) return std::unexpected(bytes.error());
    if (!*bytes) return true;
    const auto saved = saved_lock_in(**bytes);
    return saved && folder_name(saved->record.name) == name;
}

Finding records(const StoreFolder& store, const Clock& clock, Deadline deadline) {
    const auto locks = store.locks();
    if (!locks) return {"records", false, locks.error().message};
    if (!*locks) return {"records", true, "none yet"};
    const auto names = (*locks)->entries();
    if (!names) return {"records", false, names.error().message};
    std::size_t read = 0;
    for (const std::string& name : *names) {
        if (read == most_records || deadline.passed(clock))
            return {"records", true, fmt::format("the first {} of {} can be read", read, names->size())};
        if (!is_folder_name(name)) return {"records", false, (*locks)->path_of(name) + " is not a lock's folder"};
        const auto readable = is_readable(**locks, name);
        if (!readable) return {"records", false, readable.error().message};
        if (!*readable)
            return {"records", false, (*locks)->path_of(name) + "/record cannot be read; that lock is blocked"};
        ++read;
    }
    return {"records", true, fmt::format("all {} can be read", read)};
}

}  // namespace

std::vector<Finding> examine_store(const std::string& path, Sync sync, const Promise& promise, const Clock& clock,
                                   Deadline deadline) {
    std::vector<Finding> findings;
    findings.push_back({"file_system", promise.grade != Grade::c, promise.file_system});
    findings.push_back(
        {"sync", sync == Sync::on, sync == Sync::on ? "every change is forced to the disk" : "off by sync=off"});
    const auto store = StoreFolder::find(path, sync);
    if (!store) {
        findings.push_back({"folder", false, store.error().message});
        return findings;
    }
    if (!*store) {
        findings.push_back({"folder", true, path + " is made by the first use"});
        return findings;
    }
    findings.push_back({"folder", true, path + " is ours, and others cannot write to it"});
    findings.push_back({"format", true, "version 1, store " + (*store)->store_id.text()});
    findings.push_back(free_space((*store)->dir));
    findings.push_back(records(**store, clock, deadline));
    return findings;
}

}  // namespace holdfast::stores::file
