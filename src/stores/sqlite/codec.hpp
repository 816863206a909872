#pragma once

#include "kernel/record.hpp"
#include "stores/sqlite/connection.hpp"

#include <cstdint>
#include <string>

/// Rows to values and back. A row is only believed if its checksum fits: a value that cannot be read is
/// `record_corrupt`, never an absent one.
namespace holdfast::stores::sqlite {

// As columns hold it.
[[nodiscard]] constexpr std::int64_t number_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }
[[nodiscard]] constexpr std::int64_t number_of(Instant value) { return value.time_since_epoch().count(); }

/// A value and the clock by which its deadlines were written.
template <class T>
struct Stored {
    T value;
    kernel::ClockMark mark;
};

/// The columns in the order in which the functions below read and bind them.
[[nodiscard]] const std::string& lock_columns();
[[nodiscard]] const std::string& ticket_columns();
[[nodiscard]] const std::string& event_columns();

[[nodiscard]] Result<Stored<kernel::Record>> read_record(Query& row);
[[nodiscard]] Result<Stored<kernel::Ticket>> read_ticket(Query& row);
/// Its hash is not checked: `verify_chain` does that.
[[nodiscard]] Result<AuditEvent> read_event(Query& row);

void bind_record(Query& query, const kernel::Record& record, const kernel::ClockMark& saved);
void bind_ticket(Query& query, const LockName& name, const kernel::Ticket& ticket, const kernel::ClockMark& saved);
void bind_event(Query& query, const AuditEvent& event);

[[nodiscard]] Error unreadable(std::string_view lock, std::string_view what);

}  // namespace holdfast::stores::sqlite
