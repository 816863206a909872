#pragma once

#include "guards/sql/migrate/runner.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

/// What migrations have made, by fingerprints: so that a change by hand is found.
namespace holdfast::guards::migrate {

/// `table`, `users`
using ObjectName = std::pair<std::string, std::string>;
/// The fingerprint of each object of the schema, without those of Holdfast itself.
using Objects = std::map<ObjectName, std::string>;

[[nodiscard]] Result<Objects> objects_of(sql::Session& session, const LedgerTable& table, Deadline deadline);

/// The objects before the first file of a run.
struct ObjectsBefore {
    Objects objects{};
};
/// Objects that nobody knows were made by others, unless the last run was cut off. What that one changed is taken over.
[[nodiscard]] Result<ObjectsBefore> begin_objects(Runner& runner);
/// Takes over what changed since then.
[[nodiscard]] Result<void> keep_objects(Runner& runner, const ObjectsBefore& before);

struct Drift {
    enum class Kind { changed, missing, not_ours };
    Kind kind;
    ObjectName object;
};
/// What is not as the last run left it; and what no migration made, which is no error. After a run that was cut off,
/// what changed since it began counts as its work.
[[nodiscard]] Result<std::vector<Drift>> find_drift(sql::Session& session, const LedgerTable& table, Deadline deadline);

}  // namespace holdfast::guards::migrate
