#pragma once

#include "base/url.hpp"
#include "sql/session.hpp"

namespace holdfast::sql::mysql {

/// A connection for statements of users.
[[nodiscard]] Result<std::unique_ptr<Session>> open_session(base::Url url, const Clock& clock, Deadline deadline);

}  // namespace holdfast::sql::mysql
