#include "guards/worktree/exchange.hpp"

#include "base/os_error.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

int rename_with(const NamedPlace& from, const NamedPlace& to, unsigned flags) {
    return renameat2(from.folder, from.name.c_str(), to.folder, to.name.c_str(), flags) == 0 ? 0 : errno;
}

/// What file systems say that do not know a flag of renameat2.
bool is_not_supported(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

std::unexpected<Error> refused(int error, const NamedPlace& live) {
    if (error == EBUSY || error == EXDEV)
        return fail(
            Errc::store_unsafe,
            fmt::format("{} is a mount point or on another file system than .holdfast, so it cannot be replaced "
                        "in one step, and nothing was changed; restore into a new worktree instead",
                        printable(live.shown)));
    return std::unexpected(base::os_error(error, "exchange " + printable(live.shown)));
}

Result<void> make_durable(const NamedPlace& live, const NamedPlace& fresh) {
    if (fsync(live.folder) == 0 && fsync(fresh.folder) == 0) return {};
    return fail(Errc::outcome_unknown, fmt::format("{} was exchanged, and nobody knows whether that is on the disk: {}",
                                                   printable(live.shown), base::os_message(errno)));
}

}  // namespace

Result<std::optional<std::uint64_t>> inode_at(const NamedPlace& place) {
    struct stat facts{};
    if (fstatat(place.folder, place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) return facts.st_ino;
    if (errno == ENOENT) return std::nullopt;
    return std::unexpected(base::os_error(errno, "look at " + printable(place.shown)));
}

int move_to_free_name(const NamedPlace& from, const NamedPlace& to) {
    const int error = rename_with(from, to, RENAME_NOREPLACE);
    if (!is_not_supported(error)) return error;
    struct stat facts{};
    if (fstatat(to.folder, to.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    return rename_with(from, to, 0);
}

int put_in_place(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare) {
    int error = rename_with(fresh, live, RENAME_EXCHANGE);
    if (error == ENOENT) error = move_to_free_name(fresh, live);
    if (!is_not_supported(error)) return error;
    error = move_to_free_name(live, spare);
    if (error != 0 && error != ENOENT) return error;
    error = move_to_free_name(fresh, live);
    if (error != 0) static_cast<void>(move_to_free_name(spare, live));
    return error;
}

Result<void> exchange(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare) {
    if (const int error = put_in_place(live, fresh, spare); error != 0) {
        const auto moved = inode_at(spare);
        if (moved && !*moved) return refused(error, live);
        return fail(Errc::outcome_unknown,
                    fmt::format("{} was moved away and the new tree could not be moved in: {}; holdfast "
                                "worktree doctor --fix puts it right",
                                printable(live.shown), base::os_message(error)));
    }
    return make_durable(live, fresh);
}

Result<bool> finish_exchange(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare,
                             std::uint64_t inode) {
    const auto in_place = inode_at(live);
    if (!in_place) return std::unexpected(in_place.error());
    const auto moved = inode_at(spare);
    if (!moved) return std::unexpected(moved.error());
    const bool is_done = *in_place == inode;
    // Died between the two steps: the old tree was moved away, so the new one was decided on.
    if (!is_done && !*in_place && *moved)
        if (const int error = move_to_free_name(fresh, live); error != 0) return refused(error, live);
    if (auto durable = make_durable(live, fresh); !durable) return std::unexpected(durable.error());
    return is_done || (!*in_place && *moved);
}

}  // namespace holdfast::guards::worktree
