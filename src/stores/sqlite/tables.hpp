#pragma once

#include "base/turn.hpp"
#include "holdfast/store.hpp"
#include "kernel/rebase.hpp"
#include "kernel/step.hpp"
#include "stores/sqlite/connection.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::stores::sqlite {

/// One reading of the host's clocks, by which a whole transaction judges.
struct Moment {
    Instant now;
    kernel::ClockMark mark;

    [[nodiscard]] static Moment of(const Clock& clock) { return {clock.wall(), kernel::mark_of(clock)}; }
};

/// What a step reads of a lock's queue, and the tickets in it that have run out.
struct QueueView {
    kernel::Queue queue{};
    std::vector<LockId> dead{};  ///< Those before the head, without the requester's own.
};

/// A record with deadlines as of the moment of reading.
struct Found {
    kernel::Record record;
    bool of_earlier_boot = false;
};

/// What Holdfast reads and writes, inside a transaction of the caller.
class Tables {
public:
    explicit Tables(Database& database) : database_(database) {}

    /// With deadlines as of `moment`. A lock that was never used is blank.
    [[nodiscard]] Result<Found> record(const LockName& name, const Moment& moment);
    [[nodiscard]] Result<QueueView> queue(const LockName& name, std::optional<LockId> own, const Moment& moment);
    /// The first live ticket of the queue; empty if there is none. Reads no further than that.
    [[nodiscard]] Result<std::optional<LockId>> first_in_line(const LockName& name, const Moment& moment);
    /// Whether `ticket` is in the queue, alive, and whether it is the first. Costs the same however long the queue is.
    [[nodiscard]] Result<base::Standing> standing(const LockName& name, const LockId& own, const Moment& moment);
    /// Only whether it rose matters, so it is not checked against the row's checksum.
    [[nodiscard]] Result<std::uint64_t> seq(const LockName& name);

    /// Whether `record` was blank before decides between adding and changing.
    [[nodiscard]] Result<void> put_record(const kernel::Record& record, bool is_new, const Moment& moment);
    [[nodiscard]] Result<void> put_ticket(const LockName& name, const kernel::Ticket& ticket, const Moment& moment);
    [[nodiscard]] Result<void> drop_ticket(const LockName& name, const LockId& lock_id);
    [[nodiscard]] Result<void> add_event(const AuditEvent& event);
    /// Removes the events of a lock with numbers above `after`, up to `through`.
    [[nodiscard]] Result<void> prune(const LockName& name, std::uint64_t after, std::uint64_t through);

    [[nodiscard]] Result<std::vector<LockStatus>> list(const ListQuery& query, const Moment& moment);
    [[nodiscard]] Result<std::vector<AuditEvent>> history(const HistoryQuery& query);

private:
    [[nodiscard]] Result<std::optional<Found>> find(const LockName& name, const Moment& moment);
    /// Fills in how many live tickets there are, and the highest number.
    [[nodiscard]] Result<void> count(const LockName& name, const Moment& moment, kernel::Queue& queue);
    [[nodiscard]] Result<std::optional<kernel::Ticket>> ticket(const LockName& name, std::string_view lock_id,
                                                               const Moment& moment);
    /// In byte order.
    [[nodiscard]] Result<std::vector<std::string>> names(const ListQuery& query);
    [[nodiscard]] Result<std::vector<std::string>> names_since(Instant since, const ListQuery& query);
    [[nodiscard]] Result<std::vector<AuditEvent>> history_of_one(const HistoryQuery& query);
    [[nodiscard]] Result<std::vector<AuditEvent>> history_of_all(const HistoryQuery& query);

    Database& database_;
};

}  // namespace holdfast::stores::sqlite
