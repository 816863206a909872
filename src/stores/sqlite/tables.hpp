#pragma once

#include "holdfast/store.hpp"
#include "kernel/rebase.hpp"
#include "kernel/step.hpp"
#include "stores/common/bonds.hpp"
#include "stores/sqlite/connection.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::stores::sqlite {

/// One reading of the host's clocks, used for a whole transaction.
struct Moment {
    Instant now;
    kernel::ClockMark mark;

    [[nodiscard]] static Moment of(const Clock& clock) { return {clock.wall(), kernel::mark_of(clock)}; }
};

/// What a step reads of a lock's queue, and the tickets in it that have run out or whose process is dead.
struct QueueView {
    kernel::Queue queue{};
    std::vector<LockId> dead{};  ///< Those before the head, without the requester's own.
};

/// A record with deadlines as of the moment of reading.
struct Found {
    kernel::Record record;
    bool of_earlier_boot = false;
};

struct DamagedLock {
    kernel::Damage damage;
    bool has_row = false;  ///< Whatever can be read of it.
};

/// What Holdfast reads and writes, inside a transaction of the caller.
class Tables {
public:
    Tables(Database& database, const Bonds& bonds) : database_(database), bonds_(bonds) {}

    /// With deadlines as of `moment`. Empty if there is no record.
    [[nodiscard]] Result<std::optional<Found>> find(const LockName& name, const Moment& moment);
    /// The same, checked. A lock that was never used is blank.
    [[nodiscard]] Result<Found> record(const LockName& name, const Moment& moment);
    [[nodiscard]] Result<QueueView> queue(const LockName& name, std::optional<LockId> own, const Moment& moment);
    /// The first live ticket of the queue whose process is not known to be dead; empty if there is none. Reads no
    /// further than that.
    [[nodiscard]] Result<std::optional<LockId>> first_in_line(const LockName& name, const Moment& moment);
    /// When a ticket ends, or has ended; empty if it is not there. Costs the same however long the queue is.
    [[nodiscard]] Result<std::optional<Instant>> end_of_ticket(const LockName& name, const LockId& lock_id,
                                                               const Moment& moment);
    /// Not checked against the row's checksum, because the caller only compares it with an earlier value.
    [[nodiscard]] Result<std::uint64_t> seq(const LockName& name);

    /// What is known of a lock of which something cannot be read.
    [[nodiscard]] Result<DamagedLock> damage(const LockName& name, const Moment& moment);
    /// Drops all tickets of the lock. Returns their ids, as far as they are ids.
    [[nodiscard]] Result<std::vector<LockId>> clear_queue(const LockName& name);

    /// `is_new`: adds a row instead of changing one.
    [[nodiscard]] Result<void> put_record(const kernel::Record& record, bool is_new, const Moment& moment);
    [[nodiscard]] Result<void> put_ticket(const LockName& name, const kernel::Ticket& ticket, const Moment& moment);
    [[nodiscard]] Result<void> drop_ticket(const LockName& name, const LockId& lock_id);
    [[nodiscard]] Result<void> add_event(const AuditEvent& event);
    /// Removes the events of a lock with numbers above `after`, up to `through`.
    [[nodiscard]] Result<void> prune(const LockName& name, std::uint64_t after, std::uint64_t through);

private:
    /// Fills in how many live tickets there are, and the highest number.
    [[nodiscard]] Result<void> count(const LockName& name, const Moment& moment, kernel::Queue& queue);
    [[nodiscard]] Result<std::optional<kernel::Ticket>> ticket(const LockName& name, std::string_view lock_id,
                                                               const Moment& moment);

    Database& database_;
    const Bonds& bonds_;
};

}  // namespace holdfast::stores::sqlite
