#pragma once

#include "base/doorbell.hpp"
#include "kernel/record.hpp"
#include "stores/file/folder.hpp"

#include <map>
#include <memory>
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
    std::uint64_t boot = 0;               ///< Short for its boot_id.

    [[nodiscard]] std::string text() const;
    [[nodiscard]] static std::optional<TicketName> parse(std::string_view text);
};

/// The bells of those who wait for the lock of folder `lock`.
[[nodiscard]] base::Doorbells bells_of(const Folder& lock);

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

    /// Writes what changed. A queue that changes loses its dead tickets as well, and their bells.
    [[nodiscard]] Result<void> save(const Folder& lock);

    /// Whether a `save`, be it one that failed, has changed a ticket of somebody alive.
    [[nodiscard]] bool has_written() const { return has_written_; }
    /// Whether a `save` took tickets away, so that somebody else may be first now.
    [[nodiscard]] bool has_removed() const { return has_removed_; }

    /// The first live ticket.
    [[nodiscard]] std::optional<LockId> first() const;
    /// How many live tickets are before this one; empty if it is not there, or dead.
    [[nodiscard]] std::optional<std::uint64_t> ahead_of(const LockId& lock_id) const;

private:
    struct Entry {
        TicketName name{};
        std::string file{};                        ///< Where it is now; empty if it was never written.
        std::unique_ptr<kernel::Ticket> ticket{};  ///< Null until it is needed: entries are many, and are sorted.
        bool dirty = false;
    };

    TicketQueue(kernel::ClockMark mark, Instant now);
    [[nodiscard]] Result<void> add(std::string file);
    [[nodiscard]] std::chrono::milliseconds shift_of(std::chrono::milliseconds offset);
    [[nodiscard]] bool is_live(const Entry& entry) const { return entry.name.expires_at > now_; }
    [[nodiscard]] Result<kernel::Ticket> content(Entry& entry);
    [[nodiscard]] Result<void> write(Entry& entry);
    [[nodiscard]] Result<void> remove(const std::string& file, const base::Doorbells& bells) const;
    [[nodiscard]] Error corrupt(const std::string& file) const;

    kernel::ClockMark mark_;
    std::uint64_t boot_;  ///< Short for its boot_id.
    Instant now_;
    std::map<std::chrono::milliseconds, std::chrono::milliseconds> shifts_{};  ///< By offset, see `shift_of`.
    std::optional<Folder> folder_{};
    std::vector<Entry> entries_{};         ///< Of this boot, by number. Expiries are rebased to `mark_`.
    std::vector<std::string> dropped_{};   ///< Files to remove, because somebody asked for it.
    std::vector<std::string> obsolete_{};  ///< Files to remove, because they are dead.
    bool changed_ = false;
    bool has_written_ = false;
    bool has_removed_ = false;
};

}  // namespace holdfast::stores::file
