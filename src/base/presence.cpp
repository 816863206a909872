#include "base/presence.hpp"

#include "base/jitter.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <utility>

namespace holdfast::base {
namespace {

constexpr std::string_view own_suffix = ".process";
constexpr std::string_view ticket_suffix = ".ticket";
constexpr std::string_view session_suffix = ".session";
constexpr std::string_view unfinished_suffix = ".new";

/// How many old names are checked when a file is made: left-overs do not pile up, and a folder with thousands of names
/// costs no more.
constexpr std::size_t most_looked_at = 16;
/// A link to an unlocked file may be the only sign that its ticket or lease was abandoned. After a day removing it
/// costs nothing but time.
constexpr time_t age_of_left_overs = time_t{24} * 60 * 60;

struct DirCloser {
    void operator()(DIR* dir) const { closedir(dir); }
};

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, DirCloser> dir(opendir(folder.c_str()));
    if (!dir) return names;
    while (const dirent* entry = readdir(dir.get()))
        if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    return names;
}

/// A copy of the folder has the same names, and no locks. The content of the file tells the two apart.
std::string content_of_file(const struct stat& file) {
    return fmt::format("holdfast presence {} {}\n", file.st_dev, file.st_ino);
}

bool is_original(int fd, const struct stat& file) {
    const std::string expected = content_of_file(file);
    std::array<char, 128> content{};
    const ssize_t size = pread(fd, content.data(), content.size(), 0);
    return size >= 0 && std::string_view(content.data(), static_cast<std::size_t>(size)) == expected;
}

/// Another open file holds the lock; it can be one of this process, too.
bool is_locked(int fd) {
    struct flock asked{};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    return fcntl(fd, F_OFD_GETLK, &asked) != 0 || asked.l_type != F_UNLCK;
}

/// No process holds the lock on `path`, and none ever will.
bool is_abandoned(const std::string& path) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || is_locked(fd.get())) return false;
    // A file of another user proves nothing.
    const auto facts = facts_of(fd.get(), path);
    struct stat file{};
    return facts && expect_our_file(*facts, path) && fstat(fd.get(), &file) == 0 && is_original(fd.get(), file);
}

bool is_left_over(const std::string& path, time_t now) {
    struct stat named{};
    if (lstat(path.c_str(), &named) != 0) return false;
    // The name of the process's own file is no link of a ticket or a lease.
    const bool is_old = now - named.st_ctime > age_of_left_overs;
    if (!path.ends_with(own_suffix) && !is_old) return false;
    if (is_abandoned(path)) return true;
    // Not filled before its process was killed.
    return is_old && named.st_size == 0;
}

/// Removes files of killed processes. A file that is being made, and is not locked yet, may be taken for one; then it
/// is made again.
void remove_some_left_overs(const std::string& folder, time_t now) {
    std::vector<std::string> names = names_in(folder);
    for (std::size_t looked = 0; looked < most_looked_at && !names.empty(); ++looked) {
        const auto at = static_cast<std::size_t>(random_between(0, static_cast<std::int64_t>(names.size()) - 1));
        std::swap(names[at], names.back());
        const std::string path = folder + "/" + names.back();
        names.pop_back();
        if (is_left_over(path, now)) unlink(path.c_str());
    }
}

Result<void> fill_and_lock(int fd, const std::string& path) {
    struct stat file{};
    if (fstat(fd, &file) != 0) return std::unexpected(os_error(errno, "look at " + path));
    const std::string content = content_of_file(file);
    const ssize_t written = pwrite(fd, content.data(), content.size(), 0);
    if (written != static_cast<ssize_t>(content.size()))
        return std::unexpected(os_error(written < 0 ? errno : ENOSPC, "write " + path));
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    // Never unlocked: closing does that. An explicit unlock in a forked process would free the lock of its parent.
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0) return std::unexpected(os_error(errno, "lock " + path));
    return {};
}

}  // namespace

std::string Presences::path_of(const LockId& lock_id, Bond bond) const {
    return fmt::format("{}/{}{}", folder_, lock_id.text(), bond == Bond::ticket ? ticket_suffix : session_suffix);
}

bool Presences::is_gone(const LockId& lock_id, Bond bond) const {
    return are_usable() && is_abandoned(path_of(lock_id, bond));
}

std::optional<std::string> Presences::find(const LockId& lock_id, Bond bond) const {
    std::string path = path_of(lock_id, bond);
    struct stat named{};
    return are_usable() && lstat(path.c_str(), &named) == 0 ? std::optional(std::move(path)) : std::nullopt;
}

void Presences::forget(const LockId& lock_id, Bond bond) const {
    if (are_usable()) unlink(path_of(lock_id, bond).c_str());
}

bool Presence::File::is_open() const {
    struct stat opened{};
    return fstat(fd.get(), &opened) == 0 && opened.st_dev == device && opened.st_ino == inode;
}

bool Presence::File::is_named(const std::string& name) const {
    struct stat named{};
    return lstat(name.c_str(), &named) == 0 && named.st_dev == device && named.st_ino == inode;
}

Presence::~Presence() {
    for (File& file : files_) {
        if (!file.is_open()) static_cast<void>(file.fd.release());
        if (!file.fd || file.made_by != getpid()) continue;
        let_go_of_tickets(file);
        unlink(file.path.c_str());
    }
}

/// Remove the links first, while the file is still locked: the process may continue with another Store object, and its
/// tickets must not look abandoned.
void Presence::let_go_of_tickets(const File& file) const {
    struct stat opened{};
    constexpr nlink_t own_name = 1;
    if (fstat(file.fd.get(), &opened) != 0 || opened.st_nlink <= own_name) return;
    for (const std::string& name : names_in(presences_.folder())) {
        const std::string path = presences_.folder() + "/" + name;
        if (name.ends_with(ticket_suffix) && file.is_named(path)) unlink(path.c_str());
    }
}

Result<void> Presence::bind(const LockId& lock_id, Bond bond) {
    if (!presences_.are_usable())
        return fail(Errc::store_unsafe, presences_.folder() + " is where locks on files cannot be trusted");
    const std::scoped_lock lock(mutex_);
    auto linked = link(lock_id, bond);
    // It must not end with the process to which it was bound before.
    if (!linked) presences_.forget(lock_id, bond);
    return linked;
}

/// Under the mutex.
Result<void> Presence::link(const LockId& lock_id, Bond bond) {
    const std::string path = presences_.path_of(lock_id, bond);
    constexpr int most_files = 3;
    for (int made = 0;;) {
        const bool has_file = !files_.empty() && files_.back().is_open();
        if (has_file) {
            const File& file = files_.back();
            if (::link(file.path.c_str(), path.c_str()) == 0 || (errno == EEXIST && file.is_named(path))) return {};
            if (errno == EEXIST) {
                // Put in place in one step, so that it is never missing.
                const std::string aside = file.path + std::string(unfinished_suffix);
                if (::link(file.path.c_str(), aside.c_str()) == 0 && rename(aside.c_str(), path.c_str()) == 0)
                    return {};
            }
            if (errno != ENOENT) return std::unexpected(os_error(errno, "make " + path));
        }
        // Its name was removed, or its descriptor was closed.
        if (made++ == most_files) return fail(Errc::store_unavailable, "somebody removes " + path + " again and again");
        if (auto file = make_file(); !file) return file;
    }
}

/// Under the mutex.
Result<void> Presence::make_file() {
    if (auto folder = make_folder(); !folder) return folder;
    File file;
    file.path = fmt::format("{}/{}{}", presences_.folder(), LockId::random().text(), own_suffix);
    file.fd = Fd(open(file.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.fd) return std::unexpected(os_error(errno, "make " + file.path));
    auto ready = set_private_mode(file.path, 0600);
    if (ready) ready = fill_and_lock(file.fd.get(), file.path);
    struct stat opened{};
    if (ready && fstat(file.fd.get(), &opened) != 0) ready = std::unexpected(os_error(errno, "look at " + file.path));
    if (!ready) {
        unlink(file.path.c_str());
        return ready;
    }
    file.device = opened.st_dev;
    file.inode = opened.st_ino;
    file.made_by = getpid();
    remove_some_left_overs(presences_.folder(), opened.st_ctime);
    // Files without links, and files that are no longer ours.
    std::erase_if(files_, [](File& old) {
        struct stat info{};
        if (!old.is_open()) static_cast<void>(old.fd.release());
        if (!old.fd) return true;
        return fstat(old.fd.get(), &info) == 0 && info.st_nlink == 0;
    });
    files_.push_back(std::move(file));
    return {};
}

Result<void> Presence::make_folder() const {
    const std::string& folder = presences_.folder();
    if (mkdir(folder.c_str(), 0700) == 0) return set_private_mode(folder, 0700);
    if (errno != EEXIST) return std::unexpected(os_error(errno, "make " + folder));
    const auto facts = facts_of(folder);
    if (!facts) return std::unexpected(facts.error());
    if (!*facts) return fail(Errc::store_unavailable, folder + " was removed while it was made");
    return expect_our_folder(**facts, folder);
}

std::optional<int> Presence::duplicate() const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || files_.empty() || !files_.back().is_open()) return std::nullopt;
    const int copy = fcntl(files_.back().fd.get(), F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? std::nullopt : std::optional(copy);
}

}  // namespace holdfast::base
