#pragma once

#include "kernel/record.hpp"

/// Stores without a clock of their own (files, SQLite) judge expiry by the host. Its wall clock can be
/// stepped, so they save a ClockMark with every record, and move the record's deadlines by as much as
/// the wall clock was moved since: a lease lasts its ttl in real time, whatever `date -s` does.
namespace holdfast::kernel {

[[nodiscard]] ClockMark mark_of(const Clock& clock);

/// `record` as of a reading at `now`, saved under `then`.
///
/// After a reboot only the wall clock is left to judge by. It may have lost the date, so a lease then
/// lasts one more ttl at the most. It is not ended outright: a maintenance hold must outlive a reboot.
[[nodiscard]] Record rebase(Record record, const ClockMark& then, const ClockMark& mark, Instant now);
[[nodiscard]] Ticket rebase(Ticket ticket, const ClockMark& then, const ClockMark& mark, Instant now);

}  // namespace holdfast::kernel
