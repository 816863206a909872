#pragma once

#include "stores/common/optimistic.hpp"

namespace holdfast::stores::mysql {

/// A lock as this process left it.
struct KnownLock {
    kernel::Record record;  ///< Blank for a lock that was never used.
    Instant written_at{};   ///< With the record it gives the exact value that the store has.
};

struct Optimistic : OptimisticState<KnownLock> {};

}  // namespace holdfast::stores::mysql
