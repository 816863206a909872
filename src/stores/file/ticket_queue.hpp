#pragma once

#include "kernel/record.hpp"
#include "stores/file/folder.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::stores::file {

/// What the name of a ticket's file tells. The expiry is there and not inside, so that counting the
/// waiters reads no file, and keeping a ticket alive is one rename.
struct TicketName {
    std::uint64_t number = 0;
    LockId lock_id{};
    Instant expires_at{};
    std::chrono::milliseconds offset{0};  ///< Of the ClockMark that the expiry was written under.
    std::string boot{};                   ///< Short for its boot_id.

    [[nodiscard]] std::string text() const;
    [[nodiscard]] static std::optional<TicketName> parse(std::string_view text);
};

/// The waiters of one lock, in its folder `queue`: one small file each.
///
/// Tickets are not synced. Losing one costs a place in line, and nobody who waits survives the power cut
/// that could lose it: tickets of an earlier boot are dead, whatever they contain.
class TicketQueue {
public:
    /// Reads the names only. With or without the guard; without it the count may be off by tickets that
    /// change at that moment.
    [[nodiscard]] static Result<TicketQueue> load(const Folder& lock, const kernel::ClockMark& mark, Instant now);

    /// The queue as a step sees it, with the ticket `own`. Unreadable tickets are `record_corrupt`.
    [[nodiscard]] Result<kernel::Queue> view(const std::optional<LockId>& own);
    [[nodiscard]] std::uint64_t waiters() const;

    /// In memory, until `save`. With the guard only, like everything below.
    void put(const kernel::Ticket& ticket);
    void drop(const LockId& lock_id);

    /// Writes what changed. A queue that changes loses its dead tickets as well.
    [[nodiscard]] Result<void> save(const Folder& lock);

    [[nodiscard]] bool changed() const { return changed_; }
    /// Whether a `save` took tickets away, so that somebody else may be first now.
    [[nodiscard]] bool has_removed() const { return has_removed_; }

    /// Tells the first in line to look again, by the time of its file: see `was_called`. Only a hint.
    void call_head();

    /// The path of a live or dead ticket of this boot; empty if there is none.
    [[nodiscard]] std::optional<std::string> path_of(const LockId& lock_id) const;

private:
    struct Entry {
        TicketName name{};
        std::string file{};  ///< Where it is now; empty if it was never written.
        std::optional<kernel::Ticket> ticket{};
        bool dirty = false;
    };

    TicketQueue(kernel::ClockMark mark, Instant now) : mark_(std::move(mark)), now_(now) {}
    [[nodiscard]] Result<void> add(const std::string& file);
    [[nodiscard]] bool is_live(const Entry& entry) const { return entry.name.expires_at > now_; }
    [[nodiscard]] Result<kernel::Ticket> content(Entry& entry);
    [[nodiscard]] Result<void> write(Entry& entry);
    [[nodiscard]] Result<void> remove(const std::string& file) const;
    [[nodiscard]] Error corrupt(const std::string& file) const;

    kernel::ClockMark mark_;
    Instant now_;
    std::optional<Folder> folder_{};
    std::vector<Entry> entries_{};         ///< Of this boot, by number. Expiries are rebased to `mark_`.
    std::vector<std::string> obsolete_{};  ///< Files to remove.
    bool changed_ = false;
    bool has_removed_ = false;
};

/// Whether the waiter of this ticket was called since it last asked for the lock.
[[nodiscard]] bool was_called(const std::string& ticket_path);

}  // namespace holdfast::stores::file
