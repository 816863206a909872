#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

/// What a store can do here and now. Every measurement ends by itself, and releases what it takes.
namespace holdfast::cli {

/// How long a call took, over all calls of that kind.
struct Spread {
    std::uint64_t count = 0;
    std::chrono::microseconds p50{};
    std::chrono::microseconds p90{};
    std::chrono::microseconds p99{};
    std::chrono::microseconds longest{};
};

struct Pairs {
    std::uint64_t per_second = 0;  ///< Acquire and release of a lock that nobody else wants.
    Spread acquire{};
    Spread release{};
};

struct Workload {
    Store& store;
    const Clock& clock;
    Holder holder;
    unsigned clients = 1;
    std::chrono::milliseconds time{};  ///< How long to go on.
    std::stop_token stop{};
    std::function<void(double part)> progress{};  ///< Called now and then with what is done, from 0 to 1.
};

/// Each client takes and releases a lock of its own, again and again.
[[nodiscard]] Result<Pairs> measure_pairs(const Workload& work);

/// All clients wait in line for one lock: from the moment that a holder gives it back until the next has it.
[[nodiscard]] Result<Spread> measure_handover(const Workload& work);

}  // namespace holdfast::cli
