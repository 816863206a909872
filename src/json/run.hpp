#pragma once

#include "holdfast/lease.hpp"
#include "json/value.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How `run` ended.
namespace holdfast::json {

/// A lock that the command ran under.
struct RunLock {
    LockName name;
    std::optional<FencingToken> token{};
    LockId lock_id{};
    std::optional<StoreId> store_id{};
    bool is_joined = false;  ///< A command around this one held it already.
};

/// A process that still existed at the end.
struct LeftOver {
    std::optional<int> pid{};  ///< Absent where processes cannot be found.
    std::string name{};
};

/// The command's end: absent if the locks were not granted.
struct Supervised {
    std::vector<RunLock> locks{};
    std::vector<LeftOver> left_over{};
    std::optional<std::chrono::milliseconds> margin{};  ///< Between the end of the command and that of the lease.
};

struct RunOutcome {
    std::string_view outcome{};  ///< `child_exit`, `lost`, `not_acquired`…
    int exit_code = 0;
    std::optional<int> child_code{};
    std::optional<int> child_signal{};
    std::optional<Supervised> supervised{};
    Value error{};  ///< What `error_body` wrote, or null.
};

[[nodiscard]] Object run_outcome(const RunOutcome& outcome);

}  // namespace holdfast::json
