#include "base/jitter.hpp"

#include <random>

namespace holdfast::base {

using std::chrono::milliseconds;

std::int64_t random_between(std::int64_t least, std::int64_t most) {
    // Seeded at the first use: most processes never pause, and asking for randomness costs more than a grant.
    static thread_local std::minstd_rand random(std::random_device{}());
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

milliseconds random_between(milliseconds least, milliseconds most) {
    return milliseconds{random_between(least.count(), most.count())};
}

}  // namespace holdfast::base
