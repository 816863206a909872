#pragma once

#include "base/url.hpp"
#include "sql/session.hpp"

namespace holdfast::sql::sqlite {

/// A connection to a file of the user's.
[[nodiscard]] Result<std::unique_ptr<Session>> open_session(const base::Url& url, IfAbsent if_absent,
                                                            const Clock& clock);

}  // namespace holdfast::sql::sqlite
