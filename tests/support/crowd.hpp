#pragma once

#include "holdfast/store.hpp"

namespace holdfast::tests {

/// Lets `count` threads wait in line for one lock of `store`, gives it to the first of them, and expects that all get
/// it in turn and that each grant wakes at most two. No lease and no ticket runs out meanwhile, so the count does not
/// depend on how fast this runs. Prints it, after `label`.
void expect_few_wake_ups(Store& store, int count, std::string_view label);

}  // namespace holdfast::tests
