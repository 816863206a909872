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
    std::string synchronous_commit{};  ///< The role's own setting, before ours.
    std::string synchronous_standbys{};
    std::int64_t standbys = 0;
    bool in_recovery = false;
    bool pooled = false;
    Instant now{};
};
[[nodiscard]] Result<Facts> facts_of(Connection& connection, const Clock& clock, const base::CallBudget& budget);

/// The grade that follows from these facts.
[[nodiscard]] base::Grading grading_of(const Facts& facts);

[[nodiscard]] std::vector<Finding> findings_of(const Facts& facts, const Clock& clock);

/// For a store that exists: whether this role has the rights to use it, and whether the server would accept a change
/// now. Makes a change and rolls it back. `is_marked`: the store is marked as used, so the right to mark it is not
/// needed.
[[nodiscard]] std::vector<Finding> examine_use(Connection& connection, const Settings& settings, bool is_marked,
                                               const base::CallBudget& budget);

}  // namespace holdfast::stores::postgres
