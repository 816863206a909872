#include "guards/worktree/restore_excluded.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/restore_copy.hpp"
#include "guards/worktree/walker.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

/// `path` as it is called in a tree whose own path is `at`.
std::string_view beneath(std::string_view path, const std::string& at) {
    if (at.empty()) return path;
    return path.size() > at.size() ? path.substr(at.size() + 1) : std::string_view();
}

/// The folder `path` of the new tree. What is missing of it is made as it was in the old tree.
Result<Fd> make_path(int from, int to, std::string_view path) {
    auto source = open_beneath(from, "");
    auto target = open_beneath(to, "");
    if (!source) return source;
    if (!target) return target;
    while (!path.empty()) {
        const std::string name(path.substr(0, path.find('/')));
        path.remove_prefix(std::min(name.size() + 1, path.size()));
        auto inner = open_folder_at(source->get(), name, name);
        if (!inner) return inner;
        const auto made = make_folder(target->get(), name, name);
        if (!made) return std::unexpected(made.error());
        auto opened = open_folder_at(target->get(), name, name);
        if (!opened) return opened;
        struct stat facts{};
        if (*made && fstat(inner->get(), &facts) == 0) {
            Entry entry = entry_of(facts);
            entry.path = name;
            if (auto attributes = attributes_of(inner->get(), name)) entry.attributes = *std::move(attributes);
            if (auto dressed = apply_metadata(opened->get(), entry); !dressed) return std::unexpected(dressed.error());
        }
        source = *std::move(inner);
        target = *std::move(opened);
    }
    return target;
}

/// Moves one name. Folders that their owner may not write are opened for that moment.
int move_name(int from, int to, const std::string& name) {
    for (bool is_first = true;; is_first = false) {
        if (renameat2(from, name.c_str(), to, name.c_str(), RENAME_NOREPLACE) == 0) return 0;
        struct stat facts{};
        if (errno == EINVAL || errno == ENOSYS) {
            if (fstatat(to, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
            if (renameat(from, name.c_str(), to, name.c_str()) == 0) return 0;
        }
        const int error = errno;
        if (!is_first || (error != EACCES && error != EPERM)) return error;
        for (const int folder : {from, to})
            if (fstat(folder, &facts) == 0) static_cast<void>(fchmod(folder, (facts.st_mode & 07777) | 0700));
    }
}

}  // namespace

Result<ExcludedThings> ExcludedThings::in(int tree, const std::string& at, const Exclusions& exclusions,
                                          std::stop_token stop, AtTheTop at_the_top) {
    ExcludedThings things;
    things.exclusions_ = &exclusions;
    WalkOptions options{.exclusions = &exclusions, .stop = std::move(stop), .may_move = true, .at = at};
    Walker walker(tree, std::move(options));
    for (;;) {
        const auto found = walker.next();
        if (!found) return std::unexpected(found.error());
        if (!*found) break;
        for (const std::string& name : (*found)->left_out) {
            std::string path = (*found)->entry.path.empty() ? name : (*found)->entry.path + "/" + name;
            const bool moves = at_the_top == AtTheTop::moves || !(*found)->entry.path.empty();
            if (moves && is_mount_point((*found)->opened->fd.get(), name))
                return fail(Errc::store_unsafe,
                            fmt::format("{} is a mount point, which cannot be moved into another tree, and nothing was "
                                        "changed; restore into a new worktree instead",
                                        printable(path)));
            things.tops_.push_back(std::move(path));
        }
    }
    std::ranges::sort(things.tops_, comes_before);
    return things;
}

bool ExcludedThings::covers(const Entry& entry) const {
    if (exclusions_ == nullptr) return false;
    if (exclusions_->leaves_out(entry.path,
                                entry.kind == Kind::folder ? Exclusions::Thing::folder : Exclusions::Thing::other))
        return true;
    return std::ranges::binary_search(tops_, entry.path, comes_before);
}

Result<void> ExcludedThings::expect_room(const Entry& entry) const {
    if (entry.kind == Kind::folder) return {};
    const auto next = std::ranges::upper_bound(tops_, entry.path, comes_before);
    if (next == tops_.end() || !is_at_or_beneath(*next, entry.path)) return {};
    return fail(Errc::usage, fmt::format("{} is left out of snapshots and stays as it is, but {} is no folder in this "
                                         "snapshot; move it away, or restore into a new worktree",
                                         printable(*next), printable(entry.path)));
}

ExcludedThings::AtTheTop at_the_top(json::RestoreIntent::Workplace workplace, const std::string& path) {
    return is_by_names(workplace, path) ? ExcludedThings::AtTheTop::stays : ExcludedThings::AtTheTop::moves;
}

Result<CarriedOver> carry_over(int from, int to, const std::string& at, const std::vector<std::string>& tops) {
    CarriedOver carried;
    for (const std::string& top : tops) {
        const auto place = place_beneath(from, beneath(top, at));
        if (!place) return std::unexpected(place.error());
        struct stat facts{};
        if (fstatat(place->folder.get(), place->name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) continue;
            return std::unexpected(base::os_error(errno, "look at " + printable(top)));
        }
        const std::string_view path = beneath(top, at);
        const auto slash = path.rfind('/');
        const auto target =
            make_path(from, to, slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
        if (!target) return std::unexpected(target.error());
        const int error = move_name(place->folder.get(), target->get(), place->name);
        if (error == 0)
            ++carried.things;
        else if (error == EEXIST || error == ENOTEMPTY)
            carried.left_behind.push_back(top);
        else if (error != ENOENT)
            return std::unexpected(base::os_error(error, "carry over " + printable(top)));
    }
    return carried;
}

Result<void> dress_parents(int tree, const std::string& at, const Exclusions& exclusions, ManifestReader manifest) {
    Walker walker(tree, WalkOptions{.exclusions = &exclusions, .may_move = true, .at = at});
    auto listed = manifest.next();
    for (;;) {
        const auto found = walker.next();
        if (!found) return std::unexpected(found.error());
        if (!*found) return {};
        const Entry& entry = (*found)->entry;
        if ((*found)->left_out.empty()) continue;
        while (listed && *listed && comes_before((*listed)->path, entry.path)) listed = manifest.next();
        if (!listed) return std::unexpected(listed.error());
        if (*listed && (*listed)->path == entry.path && (*listed)->kind == Kind::folder)
            if (auto dressed = apply_metadata((*found)->opened->fd.get(), **listed); !dressed) return dressed;
    }
}

}  // namespace holdfast::guards::worktree
