#include "stores/sqlite/place.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <ranges>
#include <sys/stat.h>
#include <vector>

namespace holdfast::stores::sqlite {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> os_failure(int errno_value, const std::string& doing) {
    return std::unexpected(base::os_error(errno_value, doing));
}

Result<void> check_folder(const std::string& folder) {
    struct stat found{};
    if (stat(folder.c_str(), &found) != 0) return os_failure(errno, "look at " + folder);
    if (!S_ISDIR(found.st_mode)) return fail(Errc::usage, folder + " is not a folder");
    return base::expect_safe_place(folder);
}

/// Makes a new name in `folder` survive a power cut.
Result<void> sync_folder(const std::string& folder) {
    const base::Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || fsync(fd.get()) != 0) return os_failure(errno, "sync " + folder);
    return {};
}

/// A second name, or a place in another folder, would have side files of its own, and so would be a second store.
Result<void> expect_one_name(const base::FileFacts& facts, const std::string& path) {
    if (facts.names > 1)
        return fail(
            Errc::store_unsafe,
            fmt::format("{0} has {1} names (hard links), and each of them would be a store of its own; make it a "
                        "file of its own with cp -p {0} {0}.copy && mv {0}.copy {0}, while nobody uses it",
                        path, facts.names));
    if (facts.is_mounted)
        return fail(Errc::store_unsafe, path +
                                            " is mounted by itself, without the files beside it, so that it would be "
                                            "a second store; mount its folder instead");
    return {};
}

Result<void> check_side_files(const Place& place) {
    for (const std::string& path : {place.journal(), place.log(), place.index(), place.gate()}) {
        const auto found = base::facts_of(path);
        if (!found) return std::unexpected(found.error());
        if (!*found) continue;
        if (auto ours = base::expect_our_file(**found, path); !ours) return ours;
    }
    for (const std::string& path : {place.bells(), place.presence()}) {
        const auto found = base::facts_of(path);
        if (!found) return std::unexpected(found.error());
        if (!*found) continue;
        if (auto ours = base::expect_our_folder(**found, path); !ours) return ours;
    }
    return {};
}

}  // namespace

Result<Place> Place::of(const std::string& text) {
    const fs::path path(text);
    if (text.empty() || !path.has_filename() || path.filename() == "." || path.filename() == "..")
        return fail(Errc::usage, "a SQLite store needs a file: sqlite:FILE or sqlite:///abs/file.db");
    std::error_code failed;
    // SQLite refuses a symbolic link anywhere in the path when it is told to follow none. Links among the
    // folders are the administrator's choice; the file itself must not be one.
    const fs::path absolute = fs::absolute(path, failed);
    if (failed) return os_failure(failed.value(), "find " + text);
    const fs::path folder = fs::weakly_canonical(absolute.parent_path(), failed);
    if (failed) return os_failure(failed.value(), "find " + text);
    return Place{folder.string(), (folder / path.filename()).string()};
}

Result<std::optional<FileIdentity>> look_at(const Place& place) {
    if (auto safe = base::expect_safe_place(place.folder); !safe) return std::unexpected(safe.error());
    // Also where the database is missing: SQLite would use these files when it creates one.
    if (auto safe = check_side_files(place); !safe) return std::unexpected(safe.error());
    const auto found = base::facts_of(place.database);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (auto ours = base::expect_our_file(**found, place.database); !ours) return std::unexpected(ours.error());
    if (auto one = expect_one_name(**found, place.database); !one) return std::unexpected(one.error());
    if ((*found)->size == 0) return std::nullopt;
    return FileIdentity{(*found)->device, (*found)->inode};
}

std::optional<FileIdentity> identity_of(const Place& place) {
    struct stat found{};
    if (lstat(place.database.c_str(), &found) != 0) return std::nullopt;
    return FileIdentity{found.st_dev, found.st_ino};
}

bool has_log(const Place& place) {
    // A log that is no longer than its header has no content.
    constexpr off_t header = 32;
    struct stat found{};
    return lstat(place.log().c_str(), &found) == 0 && found.st_size > header;
}

bool log_is_named(const Place& place) {
    struct stat found{};
    return lstat(place.log().c_str(), &found) == 0 && lstat(place.index().c_str(), &found) == 0;
}

bool can_write(const Place& place) {
    return base::may_write(place.database) && (base::may_write(place.folder) || log_is_named(place));
}

Result<void> make_folder(const Place& place) {
    std::vector<fs::path> missing;
    std::error_code ignored;
    for (fs::path folder = place.folder; !fs::exists(folder, ignored) && folder.has_relative_path();
         folder = folder.parent_path())
        missing.push_back(folder);
    for (const fs::path& folder : missing | std::views::reverse) {
        // Another process may create the folder at the same time.
        const bool made = mkdir(folder.c_str(), 0700) == 0;
        if (!made && errno != EEXIST) return os_failure(errno, "make " + folder.string());
        if (made)
            if (auto set = base::set_private_mode(folder.string(), 0700); !set) return set;
        if (auto synced = sync_folder(folder.parent_path().string()); !synced) return synced;
    }
    return check_folder(place.folder);
}

Result<void> make_database_file(const Place& place) {
    {
        const base::Fd made(open(place.database.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!made && errno == EEXIST) return {};
        if (!made) return os_failure(errno, "make " + place.database);
        if (auto set = base::set_private_mode(place.database, 0600); !set) return set;
    }
    return sync_folder(place.folder);
}

}  // namespace holdfast::stores::sqlite
