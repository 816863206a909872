#pragma once

#include "base/frame.hpp"
#include "kernel/record.hpp"

/// How values are stored in a server: a frame with a checksum around the exact bytes of the value and the store's clock
/// when it was written. A value that was altered is `record_corrupt`, never an absent one.
///
/// The stored clock makes a clock that is put back harmless. If it shows less now than when a lease was written, the
/// deadlines are moved with it, as if no time had passed since. Without that, a lock whose holder died would stay
/// blocked for as long as the clock was put back.
namespace holdfast::stores {

/// A value as it counts at the moment of reading.
template <class T>
struct Unsealed {
    T value;
    bool moved = false;  ///< The clock went back since it was written; see `LockView::moved`.
};

[[nodiscard]] base::Bytes sealed(const kernel::Record& record, Instant written_at);
[[nodiscard]] base::Bytes sealed(const kernel::Ticket& ticket, Instant written_at);
[[nodiscard]] base::Bytes sealed(const AuditEvent& event);

/// A smaller difference comes from a clock that is being slewed, and is no step.
inline constexpr std::chrono::milliseconds slewing{100};

/// A difference of at most `tolerance` is no step: the clocks of a cluster's nodes are never equal.
[[nodiscard]] Result<Unsealed<kernel::Record>> unsealed_record(base::ByteView bytes, const LockName& name, Instant now,
                                                               std::chrono::milliseconds tolerance = slewing);
[[nodiscard]] Result<Unsealed<kernel::Ticket>> unsealed_ticket(base::ByteView bytes, const LockName& name, Instant now,
                                                               std::chrono::milliseconds tolerance = slewing);
/// Its hash is not checked: `verify_chain` does that.
[[nodiscard]] Result<AuditEvent> unsealed_event(base::ByteView bytes);

[[nodiscard]] Error unreadable(const LockName& name, std::string_view what);

}  // namespace holdfast::stores
