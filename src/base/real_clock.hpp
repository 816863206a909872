#pragma once

#include "holdfast/clock.hpp"

namespace holdfast::base {

/// Real time, also where a caller brought a clock of its own. What a caller decides (deadlines, whether a lease can be
/// trusted) is never counted on it: that is `Store::clock`. It is for
///
/// - waits for the network and for other threads, which must end although a clock that a test moves stands still;
/// - the age of what a server said, because the server's clock runs in real time, too.
[[nodiscard]] inline const Clock& real_clock() { return host_clock(); }

}  // namespace holdfast::base
