#pragma once

#include "holdfast/store.hpp"

#include <map>
#include <optional>
#include <vector>

namespace holdfast::client {

/// Turns the pages of `Store::events` into a stream: every event of every lock once, those of one lock in the order of
/// their `seq`, and no `seq` left out but those that were pruned.
///
/// Pages can repeat an event and can have a newer event of a lock before an older one. What is missing in between is
/// read from the history of that lock before anything newer of it is given out.
///
/// After a resume, an event that an earlier reader gave out can come again; nothing is missing. On SQLite, etcd and
/// memory those are the events of the calls of `next` that came after `cursor` was asked for. On the other stores those
/// of the time that pages overlap come as well: up to two and a half minutes. A caller that must not act twice keeps
/// the highest `seq` that it has handled of each lock: an event is a repetition if (name, seq) is not above that. A
/// lock whose `seq` begins again belongs to a store that was emptied or restored; its `token` is higher then, although
/// its `seq` is not. A store whose clock is put back repeats as much without a resume, of locks that are not
/// remembered.
///
/// Remembers a few numbers for each lock that had an event in the time that pages overlap, and for some that had not,
/// so that a hole is noticed in their events, too. Keeps one page of events. Not for several threads at once.
class EventReader {
public:
    static constexpr std::size_t most_remembered = 65'536;

    /// Reads on from `from`; empty: from the oldest event that is kept. Remembers at most `remembered` locks beyond
    /// those that have to be.
    explicit EventReader(EventCursor from = {}, std::size_t remembered = most_remembered)
        : cursor_(std::move(from)), remembered_(remembered) {}

    /// Skips all events that exist now.
    [[nodiscard]] Result<void> skip_to_end(Store& store, Deadline deadline);

    /// The next events; perhaps none, although there are more. After an error the next call continues where this one
    /// stopped.
    [[nodiscard]] Result<std::vector<AuditEvent>> next(Store& store, Deadline deadline);
    /// True if the last call of `next` saw the newest event that was there.
    [[nodiscard]] bool is_at_end() const { return is_at_end_; }

    /// Marks an event that the caller has already read elsewhere.
    void has_read(const AuditEvent& event);

    /// Where to resume when everything that `next` has returned was handled.
    [[nodiscard]] const EventCursor& cursor() const { return cursor_; }

private:
    /// The last event of a lock that was given out.
    struct Last {
        std::uint64_t seq = 0;
        FencingToken token{};
        Instant at{};
    };

    [[nodiscard]] Result<void> take_page(Store& store, Deadline deadline);
    [[nodiscard]] Result<void> fill_hole(Store& store, const AuditEvent& event, std::uint64_t after_seq,
                                         Deadline deadline);
    [[nodiscard]] Result<void> fill_unsettled(Store& store, const AuditEvent& event, Instant since, Deadline deadline);
    void give_out(AuditEvent event);

    EventCursor cursor_;
    std::size_t remembered_;
    std::map<LockName, Last> last_{};
    std::vector<AuditEvent> ready_{};  ///< To be returned next. Not empty between two calls if the last one failed.
    bool is_at_end_ = false;
};

}  // namespace holdfast::client
