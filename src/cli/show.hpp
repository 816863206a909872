#pragma once

#include "cli/output.hpp"
#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Holdfast's values as people read them. Everything that came from outside goes through `printable`.
namespace holdfast::cli {

/// `text` as one word of a POSIX shell, whatever it contains.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// `holder`, and for whom.
[[nodiscard]] std::string who(const Holder& holder);

/// `migrate/prod is held by …`, on one line.
[[nodiscard]] std::string sentence(const LockStatus& status);

/// One lock, a line for each thing known of it.
void show_lock(Output& out, const LockStatus& status, const StoreInfo& store);

/// A line for each lock.
void show_locks(Output& out, const std::vector<LockStatus>& locks);

/// One event on one line.
[[nodiscard]] std::string line_of(const AuditEvent& event);

/// A line for each event, or one for all renewals of a lease that follow each other.
[[nodiscard]] std::vector<std::string> lines_of(const std::vector<AuditEvent>& events);
[[nodiscard]] std::vector<std::string> folded_lines(const std::vector<AuditEvent>& events);

}  // namespace holdfast::cli
