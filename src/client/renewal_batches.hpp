#pragma once

#include "holdfast/clock.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

/// Which renewals leave together. Pure: no thread, no clock, no store.
namespace holdfast::client {

class KeptLease;

/// One hold in the renewer's timetable.
struct ScheduledRenewal {
    KeptLease* lease = nullptr;
    Boottime due = Boottime::max();       ///< When it is to be renewed.
    std::chrono::milliseconds early{0};   ///< It may leave so much before `due`, if another one is due.
    Boottime deadline = Boottime::max();  ///< When it is lost.
    Boottime give_up_at{};                ///< When a call that leaves now must have returned.
    bool has_failed = false;              ///< No renewal has succeeded since one failed.
    bool is_under_way = false;            ///< A call that has not been answered or given up contains it.
    bool is_leaving = false;              ///< Its holder waits for it to be let go.
    bool is_in_question = false;          ///< It may be lost: send a Check at once.
};

using RenewalBatch = std::vector<ScheduledRenewal*>;

/// How many renewals leave in one call at most.
inline constexpr std::size_t largest_batch = 256;

/// Splits `renewals`, which leave `now`, into batches of one call each.
///
/// - The calls of a batch may last about equally long. A call has the time of the renewal in it that has least, and a
///   long lease must not fail because a short one cannot wait.
/// - Renewals that failed are spread over `free_calls` calls. One lock that blocks its call (its row is locked, for
///   example) fails all that share the call; next time most of them are in other calls, and soon it is alone.
[[nodiscard]] std::vector<RenewalBatch> split_into_batches(RenewalBatch renewals, Boottime now, std::size_t free_calls);

}  // namespace holdfast::client
