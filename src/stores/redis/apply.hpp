#pragma once

#include "stores/redis/optimistic.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

/// How old a decision may be when it is written. What was judged by the clock of the look still holds then, to within
/// what a holder keeps in reserve.
inline constexpr std::chrono::milliseconds oldest_decision{1000};

/// Applies a batch in one call of the script, or in two: one that reads and one that writes unless something changed in
/// between. Tries again until `deadline` if other clients were faster. Keeps `locks` up to date.
[[nodiscard]] Result<std::vector<holdfast::Reply>> apply_batch(Remote& remote, LockCache<KnownLock>& locks,
                                                               std::span<const Request> requests, Deadline deadline);

}  // namespace holdfast::stores::redis
