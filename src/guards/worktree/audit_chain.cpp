#include "guards/worktree/audit_chain.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/repository.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

/// No event is longer.
constexpr std::size_t longest_line = std::size_t{1} << 16;

std::unexpected<Error> failed(int error) {
    return std::unexpected(base::os_error(error, std::string("use ") + audit_file));
}

std::unexpected<Error> broken(std::uint64_t line, std::string_view why) {
    return fail(Errc::audit_chain_broken, fmt::format("{} line {}: {}", audit_file, line, why));
}

Result<json::ReadWorktreeEvent> event_of(std::string_view line) {
    const auto node = json::parse(line);
    if (!node) return fail(Errc::audit_chain_broken, "it is no event");
    return json::read_worktree_event(*node);
}

/// The end of the log.
struct Tail {
    base::Fd file{};
    off_t whole = 0;  ///< Its size without a line that has no end.
    std::optional<json::ReadWorktreeEvent> last{};
};

Result<Tail> read_tail(int control, int flags) {
    Tail tail;
    tail.file = base::Fd(openat(control, audit_file, flags | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!tail.file && errno == ENOENT) return tail;
    if (!tail.file) return failed(errno);
    struct stat facts{};
    if (fstat(tail.file.get(), &facts) != 0) return failed(errno);
    const auto size = static_cast<std::size_t>(facts.st_size);
    std::string text(std::min(size, 2 * longest_line), '\0');
    const auto from = static_cast<off_t>(size - text.size());
    const ssize_t got = pread(tail.file.get(), text.data(), text.size(), from);
    if (got < 0) return failed(errno);
    if (got != static_cast<ssize_t>(text.size())) return failed(EIO);
    const auto end = text.rfind('\n');
    if (end == std::string::npos) {
        if (size > longest_line) return fail(Errc::audit_chain_broken, "the end of the audit log is no event");
        return tail;
    }
    tail.whole = from + static_cast<off_t>(end) + 1;
    const auto begin = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t start = begin == std::string::npos ? 0 : begin + 1;
    auto event = event_of(std::string_view(text).substr(start, end - start));
    if (!event) return fail(Errc::audit_chain_broken, "the newest event was altered: " + event.error().message);
    tail.last = *std::move(event);
    return tail;
}

}  // namespace

Result<std::optional<json::ReadWorktreeEvent>> last_event(int control) {
    auto tail = read_tail(control, O_RDONLY);
    if (!tail) return std::unexpected(tail.error());
    return std::move(tail->last);
}

Result<void> append_event(int control, json::WorktreeEvent event) {
    auto tail = read_tail(control, O_RDWR | O_CREAT);
    if (!tail) return std::unexpected(tail.error());
    if (tail->last) {
        event.seq = tail->last->event.seq + 1;
        event.prev_hash = tail->last->hash;
    } else {
        event.seq = 1;
    }
    const std::string line = json::worktree_event(event).done().written() + "\n";
    const int fd = tail->file.get();
    if (ftruncate(fd, tail->whole) != 0 || lseek(fd, tail->whole, SEEK_SET) < 0) return failed(errno);
    if (const int error = write_all(fd, line.data(), line.size()); error != 0) return failed(error);
    if (fsync(fd) != 0) return failed(errno);
    return tail->whole == 0 ? sync_folder(control, control_folder) : Result<void>();
}

Result<std::uint64_t> verify_audit(int control) {
    const base::Fd file(openat(control, audit_file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!file && errno == ENOENT) return 0;
    if (!file) return failed(errno);
    std::string rest;
    std::array<char, longest_line> buffer{};
    std::uint64_t lines = 0;
    Digest last{};
    for (;;) {
        const ssize_t got = read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(errno);
        if (got == 0) return lines;
        rest.append(buffer.data(), static_cast<std::size_t>(got));
        std::size_t from = 0;
        for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', from)) {
            const auto event = event_of(std::string_view(rest).substr(from, end - from));
            if (!event) return broken(lines + 1, event.error().message);
            if (event->event.seq != lines + 1) return broken(lines + 1, "a line is missing or was added");
            if (event->event.prev_hash != last) return broken(lines + 1, "it does not follow the line before");
            last = event->hash;
            ++lines;
            from = end + 1;
        }
        rest.erase(0, from);
        if (rest.size() > longest_line) return broken(lines + 1, "it has no end");
    }
}

}  // namespace holdfast::guards::worktree
