#include "stores/file/ticket_queue.hpp"

#include "base/os_error.hpp"
#include "kernel/codec.hpp"
#include "kernel/rebase.hpp"
#include "kernel/step.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <span>

namespace holdfast::stores::file {
namespace {

using kernel::ClockMark;
using kernel::Ticket;
using std::chrono::milliseconds;

const std::string queue_folder = "queue";
const std::string bell_folder = "bells";
/// A ticket that is being written. One name is enough, since only the owner of the guard writes.
const std::string unfinished = "new";

constexpr std::size_t longest_ticket = 16384;
constexpr std::size_t number_digits = 20;
constexpr std::size_t uuid_digits = 36;
constexpr std::size_t hex_digits = 16;
constexpr std::size_t name_size = number_digits + uuid_digits + 3 * hex_digits + 4;

std::uint64_t short_of(const std::string& boot_id) {
    const std::vector<std::uint8_t> bytes(boot_id.begin(), boot_id.end());
    const auto digest = sha256(bytes);
    std::uint64_t number = 0;
    for (const std::uint8_t byte : std::span(digest).first<hex_digits / 2>()) number = number << 8 | byte;
    return number;
}

template <class Number>
bool parse_number(std::string_view text, int base, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::string TicketName::text() const {
    return fmt::format("{:020}-{}-{:016x}-{:016x}-{:016x}", number, lock_id.text(),
                       static_cast<std::uint64_t>(expires_at.time_since_epoch().count()),
                       static_cast<std::uint64_t>(offset.count()), boot);
}

std::optional<TicketName> TicketName::parse(std::string_view text) {
    // One name for one value, so that a ticket can be found again by its content.
    const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-'; };
    if (text.size() != name_size || !std::ranges::all_of(text, fits)) return std::nullopt;
    constexpr std::size_t id_at = number_digits + 1;
    constexpr std::size_t expires_at = id_at + uuid_digits + 1;
    constexpr std::size_t offset_at = expires_at + hex_digits + 1;
    constexpr std::size_t boot_at = offset_at + hex_digits + 1;
    TicketName name;
    std::uint64_t expires = 0;
    std::uint64_t offset = 0;
    for (const std::size_t dash : {id_at, expires_at, offset_at, boot_at})
        if (text[dash - 1] != '-') return std::nullopt;
    const auto lock_id = LockId::parse(text.substr(id_at, uuid_digits));
    if (!lock_id || !parse_number(text.substr(0, number_digits), 10, name.number) ||
        !parse_number(text.substr(expires_at, hex_digits), 16, expires) ||
        !parse_number(text.substr(offset_at, hex_digits), 16, offset) ||
        !parse_number(text.substr(boot_at), 16, name.boot))
        return std::nullopt;
    name.lock_id = *lock_id;
    name.expires_at = Instant{milliseconds{static_cast<std::int64_t>(expires)}};
    name.offset = milliseconds{static_cast<std::int64_t>(offset)};
    return name;
}

base::Doorbells bells_of(const Folder& lock) { return base::Doorbells(lock.path_of(bell_folder)); }

TicketQueue::TicketQueue(ClockMark mark, Instant now)
    : mark_(std::move(mark)), boot_(short_of(mark_.boot_id)), now_(now) {}

Result<std::vector<std::string>> TicketQueue::open_folder(const Folder& lock) {
    auto folder = lock.child(queue_folder);
    if (!folder) return std::unexpected(folder.error());
    if (!*folder) return {};
    folder_.emplace(std::move(**folder).unsynced());
    return folder_->entries();
}

Result<TicketQueue> TicketQueue::load(const Folder& lock, const ClockMark& mark, Instant now) {
    TicketQueue queue(mark, now);
    auto files = queue.open_folder(lock);
    if (!files) return std::unexpected(files.error());
    queue.entries_.reserve(files->size());
    for (std::string& file : *files) {
        if (file == unfinished) continue;
        if (auto added = queue.add(std::move(file)); !added) return std::unexpected(added.error());
    }
    std::ranges::sort(queue.entries_, [](const Entry& a, const Entry& b) {
        return a.name.number != b.name.number ? a.name.number < b.name.number : a.name.expires_at > b.name.expires_at;
    });
    // Without the guard a listing can show a ticket under its old and its new name. The later expiry is the new one.
    const auto same = std::ranges::unique(queue.entries_, {}, [](const Entry& entry) { return entry.name.number; });
    queue.entries_.erase(same.begin(), same.end());
    return queue;
}

Result<TicketQueue> TicketQueue::to_clear(const Folder& lock, const ClockMark& mark, Instant now) {
    TicketQueue queue(mark, now);
    auto files = queue.open_folder(lock);
    if (!files) return std::unexpected(files.error());
    queue.obsolete_ = std::move(*files);
    queue.changed_ = queue.folder_.has_value();
    return queue;
}

Result<void> TicketQueue::add(std::string file) {
    auto name = TicketName::parse(file);
    if (!name) return std::unexpected(corrupt(file));
    if (name->boot != boot_) {
        obsolete_.push_back(std::move(file));
        return {};
    }
    name->expires_at += shift_of(name->offset);
    entries_.push_back({*name, std::move(file), nullptr, false});
    return {};
}

/// How far deadlines move that were written under `offset`. Remembered, since the tickets of a queue have few different
/// offsets.
milliseconds TicketQueue::shift_of(milliseconds offset) {
    const auto [known, is_new] = shifts_.try_emplace(offset);
    if (is_new) {
        Ticket ticket;
        ticket.expires_at = now_;
        known->second = kernel::rebase(ticket, {mark_.boot_id, offset}, mark_, now_).expires_at - now_;
    }
    return known->second;
}

void TicketQueue::end_abandoned(const Bonds& bonds, const std::optional<LockId>& own) {
    for (Entry& entry : entries_) {
        if (!is_live(entry)) continue;
        if (entry.name.lock_id == own || !bonds.is_abandoned(entry.name.lock_id)) return;
        entry.name.expires_at = now_;
    }
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
    const TicketName name{ticket.number, ticket.lock_id, ticket.expires_at, mark_.offset, boot_};
    const auto known =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.name.number == ticket.number; });
    if (known != entries_.end()) {
        known->name = name;
        known->ticket = std::make_unique<Ticket>(ticket);
        known->dirty = true;
        return;
    }
    // A new number for a known waiter: its old ticket had run out.
    drop(ticket.lock_id);
    entries_.push_back({name, "", std::make_unique<Ticket>(ticket), true});
}

void TicketQueue::drop(const LockId& lock_id) {
    changed_ = true;
    std::erase_if(entries_, [&](const Entry& entry) {
        if (entry.name.lock_id != lock_id) return false;
        if (!entry.file.empty()) dropped_.push_back(entry.file);
        return true;
    });
}

Result<void> TicketQueue::save(const Folder& lock, Bonds& bonds) {
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
    // Before new files are written: a waiter that leaves and returns in one batch can get the same file name again.
    const base::Doorbells bells = bells_of(lock);
    for (const std::string& file : dropped_) {
        if (auto removed = remove(file, bells, bonds); !removed) return removed;
        has_written_ = true;
    }
    for (const std::string& file : obsolete_)
        if (auto removed = remove(file, bells, bonds); !removed) return removed;
    for (Entry& entry : entries_)
        if (auto written = write(entry, bonds); !written) return written;
    has_removed_ = has_removed_ || !dropped_.empty() || !obsolete_.empty();
    dropped_.clear();
    obsolete_.clear();
    changed_ = false;
    return {};
}

Result<void> TicketQueue::write(Entry& entry, Bonds& bonds) {
    if (!entry.dirty) return {};
    bonds.bind_ticket(entry.name.lock_id);
    const bool is_new = entry.file.empty();
    if (is_new)
        if (auto written =
                folder_->write(unfinished, base::framed(base::FrameKind::ticket, kernel::encode(*entry.ticket)));
            !written)
            return written;
    const std::string from = is_new ? unfinished : entry.file;
    const std::string to = entry.name.text();
    if (renameat(folder_->fd(), from.c_str(), folder_->fd(), to.c_str()) != 0)
        return std::unexpected(base::os_error(errno, "write " + folder_->path_of(to)));
    entry.file = to;
    entry.dirty = false;
    has_written_ = true;
    return {};
}

Result<void> TicketQueue::remove(const std::string& file, const base::Doorbells& bells, const Bonds& bonds) const {
    const auto name = TicketName::parse(file);
    if (name) bells.take_down(name->lock_id);
    if (unlinkat(folder_->fd(), file.c_str(), 0) != 0 && errno != ENOENT)
        return std::unexpected(base::os_error(errno, "remove " + folder_->path_of(file)));
    if (name) bonds.forget_ticket(name->lock_id);
    return {};
}

std::optional<LockId> TicketQueue::first_alive(const Bonds& bonds) {
    end_abandoned(bonds, std::nullopt);
    const auto head = std::ranges::find_if(entries_, [&](const Entry& entry) { return is_live(entry); });
    return head == entries_.end() ? std::nullopt : std::optional(head->name.lock_id);
}

std::vector<LockId> TicketQueue::live() const {
    std::vector<LockId> tickets;
    for (const Entry& entry : entries_)
        if (is_live(entry)) tickets.push_back(entry.name.lock_id);
    return tickets;
}

Result<Ticket> TicketQueue::content(Entry& entry) {
    if (!entry.ticket) {
        const auto bytes = folder_->read(entry.file, longest_ticket);
        if (!bytes) return std::unexpected(bytes.error());
        const auto payload = *bytes ? base::only_frame(base::FrameKind::ticket, **bytes) : std::nullopt;
        auto ticket = payload ? kernel::decode_ticket(*payload) : std::nullopt;
        if (!ticket || ticket->number != entry.name.number || ticket->lock_id != entry.name.lock_id)
            return std::unexpected(corrupt(entry.file));
        entry.ticket = std::make_unique<Ticket>(std::move(*ticket));
    }
    entry.ticket->expires_at = entry.name.expires_at;
    return *entry.ticket;
}

Error TicketQueue::corrupt(const std::string& file) const {
    return {Errc::record_corrupt,
            folder_->path_of(file) + " cannot be read; the lock stays blocked until it is removed"};
}

Result<LockStatus> status_of(const Folder& lock, const SavedLock& saved, const Bonds& bonds, const Clock& clock) {
    const ClockMark mark = kernel::mark_of(clock);
    const Instant now = clock.wall();
    auto queue = TicketQueue::load(lock, mark, now);
    if (!queue) return std::unexpected(queue.error());
    queue->end_abandoned(bonds, std::nullopt);
    return kernel::status_of(kernel::rebase(saved.record, saved.saved_under, mark, now), queue->waiters(), now);
}

}  // namespace holdfast::stores::file
