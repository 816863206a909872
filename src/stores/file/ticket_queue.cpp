#include "stores/file/ticket_queue.hpp"

#include "base/os_error.hpp"
#include "kernel/codec.hpp"
#include "kernel/rebase.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/stat.h>

namespace holdfast::stores::file {
namespace {

using kernel::ClockMark;
using kernel::Ticket;
using std::chrono::milliseconds;

const std::string queue_folder = "queue";
/// A ticket that is being written. One name is enough, since only the owner of the guard writes.
const std::string unfinished = "new";

constexpr std::size_t longest_ticket = 4096;
constexpr std::size_t number_digits = 20;
constexpr std::size_t uuid_digits = 36;
constexpr std::size_t hex_digits = 16;
constexpr std::size_t name_size = number_digits + uuid_digits + 3 * hex_digits + 4;

std::string short_of(const std::string& boot_id) {
    const std::vector<std::uint8_t> bytes(boot_id.begin(), boot_id.end());
    return to_hex(sha256(bytes)).substr(0, hex_digits);
}

template <class Number>
bool parse_number(std::string_view text, int base, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc{} && end == text.data() + text.size();
}

/// A time that no clock shows: the waiter asked after it was called last. See call_head.
constexpr std::array<timespec, 2> not_called{timespec{0, UTIME_OMIT}, timespec{0, 0}};
constexpr std::array<timespec, 2> called{timespec{0, UTIME_OMIT}, timespec{0, UTIME_NOW}};

}  // namespace

std::string TicketName::text() const {
    return fmt::format("{:020}-{}-{:016x}-{:016x}-{}", number, lock_id.text(),
                       static_cast<std::uint64_t>(expires_at.time_since_epoch().count()),
                       static_cast<std::uint64_t>(offset.count()), boot);
}

std::optional<TicketName> TicketName::parse(std::string_view text) {
    if (text.size() != name_size) return std::nullopt;
    constexpr std::size_t id_at = number_digits + 1;
    constexpr std::size_t expires_at = id_at + uuid_digits + 1;
    constexpr std::size_t offset_at = expires_at + hex_digits + 1;
    constexpr std::size_t boot_at = offset_at + hex_digits + 1;
    TicketName name;
    std::uint64_t expires = 0;
    std::uint64_t offset = 0;
    const auto lock_id = LockId::parse(text.substr(id_at, uuid_digits));
    if (!lock_id || !parse_number(text.substr(0, number_digits), 10, name.number) ||
        !parse_number(text.substr(expires_at, hex_digits), 16, expires) ||
        !parse_number(text.substr(offset_at, hex_digits), 16, offset))
        return std::nullopt;
    name.lock_id = *lock_id;
    name.expires_at = Instant{milliseconds{static_cast<std::int64_t>(expires)}};
    name.offset = milliseconds{static_cast<std::int64_t>(offset)};
    name.boot = text.substr(boot_at);
    // One name for one value, so that a ticket can be found again under what it says.
    return name.text() == text ? std::optional(name) : std::nullopt;
}

Result<TicketQueue> TicketQueue::load(const Folder& lock, const ClockMark& mark, Instant now) {
    TicketQueue queue(mark, now);
    auto folder = lock.child(queue_folder);
    if (!folder) return std::unexpected(folder.error());
    if (!*folder) return queue;
    queue.folder_.emplace(std::move(**folder).unsynced());
    const auto files = queue.folder_->entries();
    if (!files) return std::unexpected(files.error());
    for (const std::string& file : *files) {
        if (file == unfinished) continue;
        if (auto added = queue.add(file); !added) return std::unexpected(added.error());
    }
    std::ranges::sort(queue.entries_, [](const Entry& a, const Entry& b) {
        return a.name.number != b.name.number ? a.name.number < b.name.number : a.name.expires_at > b.name.expires_at;
    });
    // Without the guard a listing can show a ticket under its old and its new name. The later expiry is the new one.
    const auto same = std::ranges::unique(queue.entries_, {}, [](const Entry& entry) { return entry.name.number; });
    queue.entries_.erase(same.begin(), same.end());
    return queue;
}

Result<void> TicketQueue::add(const std::string& file) {
    auto name = TicketName::parse(file);
    if (!name) return std::unexpected(corrupt(file));
    if (name->boot != short_of(mark_.boot_id)) {
        obsolete_.push_back(file);
        return {};
    }
    Ticket ticket;
    ticket.expires_at = name->expires_at;
    name->expires_at = kernel::rebase(ticket, {mark_.boot_id, name->offset}, mark_, now_).expires_at;
    entries_.push_back({std::move(*name), file, std::nullopt, false});
    return {};
}

Result<kernel::Queue> TicketQueue::view(const std::optional<LockId>& own) {
    kernel::Queue queue;
    queue.waiters = waiters();
    for (Entry& entry : entries_) {
        queue.last_number = entry.name.number;
        const bool is_head = !queue.head && is_live(entry);
        const bool is_own = own && entry.name.lock_id == *own;
        if (!is_head && !is_own) continue;
        auto ticket = content(entry);
        if (!ticket) return std::unexpected(ticket.error());
        if (is_own) queue.own = *ticket;
        if (is_head) queue.head = std::move(*ticket);
    }
    return queue;
}

std::uint64_t TicketQueue::waiters() const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(entries_, [&](const Entry& entry) { return is_live(entry); }));
}

void TicketQueue::put(const Ticket& ticket) {
    changed_ = true;
    const TicketName name{ticket.number, ticket.lock_id, ticket.expires_at, mark_.offset, short_of(mark_.boot_id)};
    const auto known =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.name.number == ticket.number; });
    if (known != entries_.end()) {
        known->name = name;
        known->ticket = ticket;
        known->dirty = true;
        return;
    }
    // A new number for a known waiter: its old ticket had run out.
    drop(ticket.lock_id);
    entries_.push_back({name, "", ticket, true});
}

void TicketQueue::drop(const LockId& lock_id) {
    changed_ = true;
    std::erase_if(entries_, [&](const Entry& entry) {
        if (entry.name.lock_id != lock_id) return false;
        if (!entry.file.empty()) obsolete_.push_back(entry.file);
        return true;
    });
}

Result<void> TicketQueue::save(const Folder& lock) {
    if (!changed_) return {};
    if (!folder_) {
        auto made = lock.made_child(queue_folder);
        if (!made) return std::unexpected(made.error());
        folder_.emplace(std::move(*made).unsynced());
    }
    std::erase_if(entries_, [&](const Entry& entry) {
        if (is_live(entry)) return false;
        if (!entry.file.empty()) obsolete_.push_back(entry.file);
        return true;
    });
    for (Entry& entry : entries_)
        if (auto written = write(entry); !written) return written;
    for (const std::string& file : obsolete_)
        if (auto removed = remove(file); !removed) return removed;
    has_removed_ = has_removed_ || !obsolete_.empty();
    obsolete_.clear();
    changed_ = false;
    return {};
}

Result<void> TicketQueue::write(Entry& entry) {
    if (!entry.dirty) return {};
    const bool is_new = entry.file.empty();
    if (is_new)
        if (auto written =
                folder_->write(unfinished, base::framed(base::FrameKind::ticket, kernel::encode(*entry.ticket)));
            !written)
            return written;
    const std::string from = is_new ? unfinished : entry.file;
    const std::string to = entry.name.text();
    if (utimensat(folder_->fd(), from.c_str(), not_called.data(), AT_SYMLINK_NOFOLLOW) != 0 ||
        renameat(folder_->fd(), from.c_str(), folder_->fd(), to.c_str()) != 0)
        return std::unexpected(base::os_error(errno, "write " + folder_->path_of(to)));
    entry.file = to;
    entry.dirty = false;
    return {};
}

Result<void> TicketQueue::remove(const std::string& file) const {
    if (unlinkat(folder_->fd(), file.c_str(), 0) == 0 || errno == ENOENT) return {};
    return std::unexpected(base::os_error(errno, "remove " + folder_->path_of(file)));
}

void TicketQueue::call_head() {
    const auto head = std::ranges::find_if(entries_, [&](const Entry& entry) { return is_live(entry); });
    if (head == entries_.end() || head->file.empty()) return;
    // A lost call costs the waiter one poll, and the change it tells of is saved already: no error to report.
    static_cast<void>(utimensat(folder_->fd(), head->file.c_str(), called.data(), AT_SYMLINK_NOFOLLOW));
}

std::optional<std::string> TicketQueue::path_of(const LockId& lock_id) const {
    const auto found =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.name.lock_id == lock_id; });
    return found == entries_.end() ? std::nullopt : std::optional(folder_->path_of(found->file));
}

Result<Ticket> TicketQueue::content(Entry& entry) {
    if (!entry.ticket) {
        const auto bytes = folder_->read(entry.file, longest_ticket);
        if (!bytes) return std::unexpected(bytes.error());
        const auto payload = *bytes ? base::only_frame(base::FrameKind::ticket, **bytes) : std::nullopt;
        auto ticket = payload ? kernel::decode_ticket(*payload) : std::nullopt;
        if (!ticket || ticket->number != entry.name.number || ticket->lock_id != entry.name.lock_id)
            return std::unexpected(corrupt(entry.file));
        entry.ticket = std::move(*ticket);
    }
    entry.ticket->expires_at = entry.name.expires_at;
    return *entry.ticket;
}

Error TicketQueue::corrupt(const std::string& file) const {
    return {Errc::record_corrupt,
            folder_->path_of(file) + " cannot be read; the lock stays blocked until it is removed"};
}

bool was_called(const std::string& ticket_path) {
    struct stat info{};
    // Gone counts as called: its waiter has to look.
    if (lstat(ticket_path.c_str(), &info) != 0) return true;
    return info.st_mtim.tv_sec != 0 || info.st_mtim.tv_nsec != 0;
}

}  // namespace holdfast::stores::file
