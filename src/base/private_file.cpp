#include "base/private_file.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::base {
namespace {

/// A named pipe in the place of the file must not be waited for.
constexpr int safely = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string folder_of_file(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

FileVersion version_in(const struct stat& found) {
    return {.device = found.st_dev,
            .inode = found.st_ino,
            .size = static_cast<std::uint64_t>(found.st_size),
            .changed_ns = std::int64_t{found.st_ctim.tv_sec} * 1'000'000'000 + found.st_ctim.tv_nsec};
}

Result<std::string> read_up_to(int file, std::size_t most, const std::string& path) {
    std::string text;
    std::array<char, 65536> part{};
    while (true) {
        const ssize_t got = read(file, part.data(), part.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::unexpected(os_error(errno, "read " + path));
        if (got == 0) return text;
        text.append(part.data(), static_cast<std::size_t>(got));
        if (text.size() > most) return fail(Errc::store_unsafe, fmt::format("{} is larger than {} bytes", path, most));
    }
}

Result<void> write_whole(int file, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t written = write(file, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return std::unexpected(os_error(errno, "write " + path));
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    if (fchmod(file, 0600) != 0) return std::unexpected(os_error(errno, "set the mode of " + path));
    if (fsync(file) != 0) return std::unexpected(os_error(errno, "sync " + path));
    return {};
}

}  // namespace

Result<std::optional<FileVersion>> version_of(const std::string& path) {
    struct stat found{};
    if (stat(path.c_str(), &found) == 0) return version_in(found);
    if (errno == ENOENT) return std::nullopt;
    return std::unexpected(os_error(errno, "look at " + path));
}

Result<PrivateFile> read_private_file(const std::string& path, std::size_t most) {
    if (auto safe = expect_safe_place(folder_of_file(path)); !safe) return std::unexpected(safe.error());
    const Fd file(open(path.c_str(), O_RDONLY | safely));
    if (!file) return std::unexpected(os_error(errno, "open " + path));
    const auto facts = facts_of(file.get(), path);
    if (!facts) return std::unexpected(facts.error());
    if (auto ours = expect_our_file(*facts, path); !ours) return std::unexpected(ours.error());
    // Looked at before it is read: a change in between shows as another version later.
    struct stat found{};
    if (fstat(file.get(), &found) != 0) return std::unexpected(os_error(errno, "look at " + path));
    auto text = read_up_to(file.get(), most, path);
    if (!text) return std::unexpected(text.error());
    return PrivateFile{std::move(*text), version_in(found)};
}

Result<void> replace_private_file(const std::string& path, std::string_view text) {
    const std::string folder_path = folder_of_file(path);
    if (auto safe = expect_safe_place(folder_path); !safe) return safe;
    const auto facts = facts_of(path);
    if (!facts) return std::unexpected(facts.error());
    if (*facts)
        if (auto ours = expect_our_file(**facts, path); !ours) return ours;
    const Fd folder(open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return std::unexpected(os_error(errno, "open " + folder_path));
    const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
    // Left over by a process that died, and had our number.
    if (unlink(temporary.c_str()) != 0 && errno != ENOENT)
        return std::unexpected(os_error(errno, "remove " + temporary));
    const Fd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | safely, 0600));
    if (!file) return std::unexpected(os_error(errno, "make " + temporary));
    auto done = write_whole(file.get(), text, temporary);
    if (done && rename(temporary.c_str(), path.c_str()) != 0)
        done = std::unexpected(os_error(errno, "replace " + path));
    if (!done) {
        unlink(temporary.c_str());
        return done;
    }
    if (fsync(folder.get()) != 0)
        return fail(Errc::outcome_unknown, fmt::format("{} was replaced, but perhaps not for good", path));
    return {};
}

}  // namespace holdfast::base
