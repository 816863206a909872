#pragma once

#include "cli/output.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::cli {

/// Names the holder to a person that waits for its lock, and says when it may be their turn: once for each lease, and
/// nothing with --json.
class WaitingNotice {
public:
    /// `out` and `clock` must outlive it.
    WaitingNotice(const Output& out, const Clock& clock) : out_(&out), clock_(&clock) {}

    /// `asked` is the lock that is waited for, on `store`. What is in the way may be another one.
    void show(const Error& conflict, Store& store, const LockName& asked);

    /// The store is away: said once.
    void show_away(const Error& why);

private:
    [[nodiscard]] std::string usual(const LockStatus& lock, Store& store, const LockName& asked);

    const Output* out_;
    const Clock* clock_;
    std::optional<std::string> shown_{};  ///< The lock_id; empty where nobody holds the lock.
    std::optional<LockName> asked_{};
    bool has_shown_away_ = false;
    std::uint64_t ahead_ = 0;  ///< Waiters for `asked_` that come first.
};

}  // namespace holdfast::cli
