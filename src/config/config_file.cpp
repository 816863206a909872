#include "config/config_file.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "values/text.hpp"
#include "values/users.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::config {
namespace {

/// Without O_NONBLOCK, opening a named pipe waits until somebody writes into it.
constexpr int reading = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;

std::unexpected<Error> unreadable(const std::string& path, int error) {
    return fail(Errc::config, fmt::format("cannot read {}: {}", printable(path), base::os_message(error)));
}

std::unexpected<Error> untrusted(const std::string& path, std::string_view why) {
    return fail(Errc::config, fmt::format("{} was found without being named, but {}; if it is to be used all the same, "
                                          "name it with --config or HOLDFAST_CONFIG",
                                          printable(path), why));
}

bool is_ours(const struct stat& info) { return info.st_uid == geteuid() || info.st_uid == 0; }

std::string owner(const struct stat& info) { return "belongs to " + printable(user_name(info.st_uid)); }

/// What the symbolic link at `path` leads to. Absent if there is no link any more.
Result<std::optional<std::string>> followed(const std::string& path) {
    // The link itself is opened, so that its owner and its target are those of one and the same link.
    const base::Fd link(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info{};
    if (!link || fstat(link.get(), &info) != 0) return unreadable(path, errno);
    if (!S_ISLNK(info.st_mode)) return std::nullopt;
    if (!is_ours(info)) return untrusted(path, "it is a link that " + owner(info));
    std::array<char, PATH_MAX> target{};
    const ssize_t length = readlinkat(link.get(), "", target.data(), target.size());
    if (length < 0) return unreadable(path, errno);
    const std::string_view text(target.data(), static_cast<std::size_t>(length));
    return (std::filesystem::path(path).parent_path() / text).string();
}

/// Opens a file that was found, through links that the user or root made.
Result<base::Fd> open_found(const std::string& path) {
    std::string next = path;
    for (int links = 0; links < 40; ++links) {
        base::Fd file(open(next.c_str(), reading | O_NOFOLLOW));
        if (file) return file;
        if (errno != ELOOP) return unreadable(path, errno);
        auto target = followed(next);
        if (!target) return std::unexpected(target.error());
        if (*target) next = std::move(**target);
    }
    return unreadable(path, ELOOP);
}

Result<base::Fd> open_file(const std::string& path, Chosen chosen) {
    if (chosen == Chosen::by_search) return open_found(path);
    base::Fd file(open(path.c_str(), reading));
    if (!file) return unreadable(path, errno);
    return file;
}

Result<void> check(const std::string& path, const struct stat& info, Chosen chosen) {
    // --config /dev/null stands for no configuration.
    const bool device = S_ISCHR(info.st_mode) && chosen == Chosen::by_name;
    if (!S_ISREG(info.st_mode) && !device)
        return fail(Errc::config, printable(path) + " is not a regular file; remove it, or name another with --config");
    if (chosen == Chosen::by_name) return {};
    if (!is_ours(info)) return untrusted(path, "it " + owner(info));
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return untrusted(path, "others can write it (chmod go-w makes it yours alone)");
    return {};
}

}  // namespace

Result<std::string> read_config_file(const std::string& path, Chosen chosen) {
    constexpr std::size_t most = std::size_t{1} << 20;
    const auto file = open_file(path, chosen);
    if (!file) return std::unexpected(file.error());
    struct stat info{};
    if (fstat(file->get(), &info) != 0) return unreadable(path, errno);
    if (auto good = check(path, info, chosen); !good) return std::unexpected(good.error());
    std::string text(most + 1, '\0');
    std::size_t length = 0;
    while (length < text.size()) {
        const ssize_t got = read(file->get(), text.data() + length, text.size() - length);
        if (got == 0) break;
        if (got < 0 && errno != EINTR) return unreadable(path, errno);
        if (got > 0) length += static_cast<std::size_t>(got);
    }
    if (length > most) return fail(Errc::config, printable(path) + " is larger than 1 MiB");
    text.resize(length);
    return text;
}

}  // namespace holdfast::config
