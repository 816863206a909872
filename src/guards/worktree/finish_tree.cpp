#include "guards/worktree/finish_tree.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "values/text.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace holdfast::guards::worktree {
namespace {

Result<void> link_names(int root, ManifestReader manifest) {
    for (;;) {
        const auto entry = manifest.next();
        if (!entry) return std::unexpected(entry.error());
        if (!*entry) return {};
        if ((*entry)->kind != Kind::hard_link) continue;
        const auto old_place = place_beneath(root, (*entry)->target);
        const auto new_place = place_beneath(root, (*entry)->path);
        if (!old_place) return std::unexpected(old_place.error());
        if (!new_place) return std::unexpected(new_place.error());
        if (linkat(old_place->folder.get(), old_place->name.c_str(), new_place->folder.get(), new_place->name.c_str(),
                   0) != 0)
            return std::unexpected(base::os_error(errno, "link " + printable((*entry)->path)));
    }
}

/// A folder whose metadata is due as soon as the walk leaves it: not earlier, since its mode may forbid to enter it.
struct Pending {
    Fd fd{};
    Entry entry{};
};

bool is_in(const Entry& entry, const Entry& folder) {
    if (folder.path.empty()) return !entry.path.empty();
    return entry.path.size() > folder.path.size() && entry.path.starts_with(folder.path) &&
           entry.path[folder.path.size()] == '/';
}

Result<void> dress_folders(int root, ManifestReader manifest, Attributed attributed) {
    std::vector<Pending> open;
    for (;;) {
        auto entry = manifest.next();
        if (!entry) return std::unexpected(entry.error());
        if (*entry && (*entry)->kind != Kind::folder) continue;
        while (!open.empty() && (!*entry || !is_in(**entry, open.back().entry))) {
            if (auto dressed = apply_metadata(open.back().fd.get(), open.back().entry, attributed); !dressed)
                return dressed;
            open.pop_back();
        }
        if (!*entry) return {};
        const std::string& path = (*entry)->path;
        auto fd = open.empty() ? open_beneath(root, path)
                               : open_folder_at(open.back().fd.get(), path.substr(path.rfind('/') + 1), path);
        if (!fd) return std::unexpected(fd.error());
        open.push_back({*std::move(fd), *std::move(*entry)});
    }
}

}  // namespace

Result<void> finish_tree(int root, int manifest_folder, const std::string& manifest_name, Attributed attributed) {
    auto names = ManifestReader::open(manifest_folder, manifest_name);
    if (!names) return std::unexpected(names.error());
    if (auto linked = link_names(root, *std::move(names)); !linked) return linked;
    auto folders = ManifestReader::open(manifest_folder, manifest_name);
    if (!folders) return std::unexpected(folders.error());
    return dress_folders(root, *std::move(folders), attributed);
}

}  // namespace holdfast::guards::worktree
