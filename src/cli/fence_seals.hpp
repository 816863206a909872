#pragma once

#include "cli/context.hpp"
#include "cli/run_locks.hpp"
#include "holdfast/hold.hpp"

#include <string>
#include <vector>

/// What `holdfast run` does for databases with a fence before it starts the command: it seals them, and lets sessions
/// of the command's PostgreSQL clients carry its leases.
namespace holdfast::cli {

enum class Sealed { nothing, no_postgres, in_postgres };

/// Seals the databases of --fence, and those of the locks in PostgreSQL that have a fence. Refused as a seal is; then
/// the command must not start.
[[nodiscard]] Result<Sealed> seal_databases(const Context& context, const std::vector<HeldLease>& leases,
                                            const HoldGroup& group);

/// Adds the setting `holdfast.leases` to PGOPTIONS, without the secrets of the leases.
void carry_in_postgres(std::vector<std::string>& environment, const std::vector<InheritedLease>& leases);

}  // namespace holdfast::cli
