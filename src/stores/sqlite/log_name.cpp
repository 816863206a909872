#include "stores/sqlite/log_name.hpp"

#include "base/fd.hpp"

#include <fmt/format.h>

#include <array>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace holdfast::stores::sqlite {
namespace {

constexpr const char* attribute = "user.holdfast.synced_name";

std::string folder_of(std::string_view path) {
    const auto slash = path.rfind('/');
    if (slash == std::string_view::npos) return ".";
    return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

/// What tells this entry from others on the same file system; the boot is none of it, because what is there after
/// one was on the disk.
std::string entry(std::string_view path, const struct stat& folder) {
    return fmt::format("{} {}", folder.st_ino, path.substr(path.rfind('/') + 1));
}

}  // namespace

LogName look_at_name(const char* path) {
    std::array<char, 512> found{};
    const ssize_t size = lgetxattr(path, attribute, found.data(), found.size());
    if (size < 0) {
        struct stat log{};
        return lstat(path, &log) == 0 ? LogName::present : LogName::absent;
    }
    struct stat folder{};
    if (stat(folder_of(path).c_str(), &folder) != 0) return LogName::present;
    const bool is_this = entry(path, folder) == std::string_view(found.data(), static_cast<std::size_t>(size));
    return is_this ? LogName::durable : LogName::present;
}

bool make_name_durable(const char* path) {
    const base::Fd folder(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat found{};
    if (!folder || fsync(folder.get()) != 0 || fstat(folder.get(), &found) != 0) return false;
    const std::string value = entry(path, found);
    // Where it cannot be written down the folder is synced again by the next process.
    static_cast<void>(lsetxattr(path, attribute, value.data(), value.size(), 0));
    return true;
}

}  // namespace holdfast::stores::sqlite
