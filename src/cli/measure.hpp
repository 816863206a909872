#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"
#include "json/store.hpp"

#include <chrono>
#include <functional>
#include <stop_token>
#include <vector>

/// What a store can do here and now. Every measurement ends by itself, and releases what it takes.
namespace holdfast::cli {

using json::Pairs;
using json::Spread;

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

/// All clients wait in the queue of one lock: from the moment that a holder gives it back until the next has it.
[[nodiscard]] Result<Spread> measure_handover(const Workload& work);

}  // namespace holdfast::cli
