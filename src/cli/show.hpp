#pragma once

#include "cli/output.hpp"
#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"
#include "values/usual_hold.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Holdfast's values as people read them. Everything that came from outside goes through `printable`.
namespace holdfast::cli {

/// `holder`, and for whom.
[[nodiscard]] std::string who(const Holder& holder);

/// `migrate/prod is held by …`, on one line.
[[nodiscard]] std::string sentence(const LockStatus& status);

/// `held 41 min, usually 6 min; about your turn in 12 min`. Without `ahead`, the number of waiters before the reader,
/// nothing is said of a turn.
[[nodiscard]] std::string usual_words(const LockStatus& status, const UsualHold& usual,
                                      std::optional<std::uint64_t> ahead);

/// One lock, a line for each thing known of it.
void show_lock(Output& out, const LockStatus& status, const StoreInfo& store, const std::optional<UsualHold>& usual);

/// Says that what was read of the store may be old, if so.
void note_stale(const Output& out, const std::optional<StoreInfo>& store);

/// A lease that nobody has taken over for a day: in the morning a list still tells what happened at night.
[[nodiscard]] bool ran_out_long_ago(const LockStatus& status);

/// A line for each lock.
void show_locks(Output& out, const std::vector<LockStatus>& locks);

/// One event on one line.
[[nodiscard]] std::string line_of(const AuditEvent& event);

/// A line for each event, or one for all renewals of a lease that follow each other.
[[nodiscard]] std::vector<std::string> lines_of(const std::vector<AuditEvent>& events);
[[nodiscard]] std::vector<std::string> folded_lines(const std::vector<AuditEvent>& events);

}  // namespace holdfast::cli
