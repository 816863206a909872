#pragma once

#include "base/grading.hpp"
#include "holdfast/store.hpp"
#include "stores/postgres/connection.hpp"

namespace holdfast::stores::postgres {

/// What the server says about itself.
struct Facts {
    std::string version{};
    bool fsync = false;
    bool full_page_writes = false;
    std::string synchronous_commit{};  ///< What this role would have without us.
    std::string synchronous_standbys{};
    std::int64_t standbys = 0;
    bool in_recovery = false;
    bool pooled = false;
    Instant now{};
};
[[nodiscard]] Result<Facts> facts_of(Connection& connection, const Clock& clock, const CallBudget& budget);

/// What that promises.
[[nodiscard]] base::Grading grading_of(const Facts& facts);

[[nodiscard]] std::vector<Finding> findings_of(const Facts& facts, const Clock& clock);

/// Of a store that is there: whether this role has the rights to use it, and whether the server would take a change
/// now. Makes one, and takes it back. A store that `is_marked` as used needs no right to be.
[[nodiscard]] std::vector<Finding> examine_use(Connection& connection, const Settings& settings, bool is_marked,
                                               const CallBudget& budget);

}  // namespace holdfast::stores::postgres
