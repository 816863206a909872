#pragma once

#include "holdfast/store.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

/// How many locks are asked for at once: Redis serves nobody else meanwhile.
inline constexpr std::size_t locks_at_once = 256;

/// A time as a score of the index of changes.
[[nodiscard]] std::string score_of(Instant instant);
/// The names of an answer, in its order. `record_corrupt` for a text that is no name.
[[nodiscard]] Result<std::vector<LockName>> names_in(Value list);

[[nodiscard]] Result<LockStatus> read_status(Remote& remote, const LockName& name, Deadline deadline);
[[nodiscard]] Result<std::vector<LockStatus>> read_list(Remote& remote, const ListQuery& query, Deadline deadline);

}  // namespace holdfast::stores::redis
