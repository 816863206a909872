#pragma once

#include "holdfast/clock.hpp"
#include "sql/session.hpp"

#include <string>
#include <string_view>

namespace holdfast::guards::migrate {

/// Who may hold what `statement` waited for, for people: the sessions with a lock on a table that it names, or where
/// the server does not tell, those with an open transaction.
[[nodiscard]] std::string blockers_of(sql::Session& session, std::string_view statement, Deadline deadline);

}  // namespace holdfast::guards::migrate
