#pragma once

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
[[nodiscard]] Result<Facts> facts_of(Connection& connection, const Clock& clock, const Budget& budget);

/// What that promises.
struct Standing {
    Grade grade = Grade::c;
    std::vector<std::string> reasons{};
};
[[nodiscard]] Standing standing_of(const Facts& facts);

[[nodiscard]] std::vector<Finding> findings_of(const Facts& facts, const Clock& clock);

}  // namespace holdfast::stores::postgres
