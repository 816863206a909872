#pragma once

#include "holdfast/error.hpp"

namespace holdfast::cli {

/// What the caller may have left in a state in which a lock cannot be kept safely. Called first of all.
///
/// Standard descriptors that are closed are occupied: the next file or socket that is opened would get their number,
/// and a message for people would be written into it. Reading and writing fail as before, and a child finds them
/// closed, as it would without us. A file that reaches its size limit is an error like any other, and no signal.
///
/// Refused with `denied` if the program is installed setuid or setgid: its caller would choose, through options,
/// environment and configuration, what is read and run with rights that are not theirs.
[[nodiscard]] Result<void> prepare_process();

}  // namespace holdfast::cli
