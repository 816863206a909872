#pragma once

#include "base/doorbell.hpp"
#include "kernel/record.hpp"
#include "stores/common/bonds.hpp"
#include "stores/file/codec.hpp"
#include "stores/file/folder.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::stores::file {

/// The values in the name of a ticket's file. The expiry is part of the name, so that counting the waiters reads no
/// file, and keeping a ticket alive is one rename.
struct TicketName {
    std::uint64_t number = 0;
    LockId lock_id{};
    Instant expires_at{};
    std::chrono::milliseconds offset{0};  ///< Of the ClockMark that the expiry was written under.
    std::uint64_t boot = 0;               ///< A short form of its boot_id.

    [[nodiscard]] std::string text() const;
    [[nodiscard]] static std::optional<TicketName> parse(std::string_view text);
};

/// The bells of the waiters for the lock of folder `lock`.
[[nodiscard]] base::Doorbells bells_of(const Folder& lock);

/// The waiters of one lock, in its folder `queue`: one small file each.
///
/// Tickets are not synced. A power cut can lose them, and ends every waiter, too: tickets of an earlier boot are dead,
/// whatever they contain.
class TicketQueue {
public:
    /// Reads the names only. With or without the guard; without it the count may be off by the tickets that are
    /// changing at that moment.
    [[nodiscard]] static Result<TicketQueue> load(const Folder& lock, const kernel::ClockMark& mark, Instant now);

    /// A queue from which `save` removes all that is there, whatever it is.
    [[nodiscard]] static Result<TicketQueue> to_clear(const Folder& lock, const kernel::ClockMark& mark, Instant now);

    /// Tickets count as run out if their process is gone, and nobody that lives is before them. That of `own` does not:
    /// the requester is alive.
    void end_abandoned(const Bonds& bonds, const std::optional<LockId>& own);

    /// The queue as a step sees it, with the ticket `own`. Unreadable tickets are `record_corrupt`.
    [[nodiscard]] Result<kernel::Queue> view(const std::optional<LockId>& own);
    [[nodiscard]] std::uint64_t waiters() const;

    /// In memory, until `save`. With the guard only, like everything below.
    void put(const kernel::Ticket& ticket);
    void drop(const LockId& lock_id);

    /// Writes what changed, and binds it to this process. A queue that changes loses its dead tickets as well, and
    /// their bells.
    [[nodiscard]] Result<void> save(const Folder& lock, Bonds& bonds);

    /// Whether a `save`, even one that failed, has changed a live ticket.
    [[nodiscard]] bool has_written() const { return has_written_; }
    /// Whether a `save` removed tickets, so that another waiter may be first now.
    [[nodiscard]] bool has_removed() const { return has_removed_; }

    /// The first live ticket whose process is not known to be dead.
    [[nodiscard]] std::optional<LockId> first_alive(const Bonds& bonds);
    /// All live tickets, in order.
    [[nodiscard]] std::vector<LockId> live() const;

private:
    struct Entry {
        TicketName name{};
        std::string file{};                        ///< The name that its file has now; empty if it was never written.
        std::unique_ptr<kernel::Ticket> ticket{};  ///< Null until needed: there are many entries, and they are sorted.
        bool dirty = false;
    };

    TicketQueue(kernel::ClockMark mark, Instant now);
    /// Opens the folder, if it exists. The names in it.
    [[nodiscard]] Result<std::vector<std::string>> open_folder(const Folder& lock);
    [[nodiscard]] Result<void> add(std::string file);
    [[nodiscard]] std::chrono::milliseconds shift_of(std::chrono::milliseconds offset);
    [[nodiscard]] bool is_live(const Entry& entry) const { return entry.name.expires_at > now_; }
    [[nodiscard]] Result<kernel::Ticket> content(Entry& entry);
    [[nodiscard]] Result<void> write(Entry& entry, Bonds& bonds);
    [[nodiscard]] Result<void> remove(const std::string& file, const base::Doorbells& bells, const Bonds& bonds) const;
    [[nodiscard]] Error corrupt(const std::string& file) const;

    kernel::ClockMark mark_;
    std::uint64_t boot_;  ///< A short form of its boot_id.
    Instant now_;
    std::map<std::chrono::milliseconds, std::chrono::milliseconds> shifts_{};  ///< By offset, see `shift_of`.
    std::optional<Folder> folder_{};
    std::vector<Entry> entries_{};         ///< Of this boot, by number. Expiries are rebased to `mark_`.
    std::vector<std::string> dropped_{};   ///< Files to remove because a step dropped their tickets.
    std::vector<std::string> obsolete_{};  ///< Files to remove because their tickets have expired.
    bool changed_ = false;
    bool has_written_ = false;
    bool has_removed_ = false;
};

/// The lock as users see it, at this moment.
[[nodiscard]] Result<LockStatus> status_of(const Folder& lock, const SavedLock& saved, const Bonds& bonds,
                                           const Clock& clock);

}  // namespace holdfast::stores::file
