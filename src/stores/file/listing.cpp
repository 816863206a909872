#include "stores/file/listing.hpp"

#include "stores/file/lock_folder.hpp"
#include "stores/file/name_encoding.hpp"

#include <algorithm>
#include <optional>

namespace holdfast::stores::file {
namespace {

/// Empty if the lock has no record.
Result<std::optional<std::string>> name_of_lock(const Folder& locks, const std::string& folder) {
    if (auto name = name_in(folder)) return name;
    const auto lock = LockFolder::find(locks, folder);
    if (!lock) return std::unexpected(lock.error());
    if (!*lock) return std::nullopt;
    const auto saved = (*lock)->load();
    if (!saved) return std::unexpected(saved.error());
    if (!*saved) return std::nullopt;
    return (*saved)->record.name.text();
}

}  // namespace

Result<std::vector<std::string>> folders_of(const Folder& locks, const NameRange& range, const Clock& clock,
                                            Deadline deadline) {
    const auto entries = locks.entries();
    if (!entries) return std::unexpected(entries.error());
    struct NamedFolder {
        std::string name;
        std::string folder;
    };
    std::vector<NamedFolder> found;
    for (const std::string& folder : *entries) {
        if (!is_folder_name(folder)) continue;
        if (deadline.passed(clock)) return std::unexpected(out_of_time());
        const auto name = name_of_lock(locks, folder);
        if (!name) return std::unexpected(name.error());
        if (*name && (*name)->starts_with(range.prefix) && **name > range.after) found.push_back({**name, folder});
    }
    std::ranges::sort(found, {}, &NamedFolder::name);
    std::vector<std::string> folders;
    folders.reserve(found.size());
    for (NamedFolder& one : found) folders.push_back(std::move(one.folder));
    return folders;
}

Error out_of_time() { return {Errc::store_unavailable, "the deadline passed while the store was read"}; }

}  // namespace holdfast::stores::file
