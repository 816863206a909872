#pragma once

#include "stores/postgres/connection.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::stores::postgres {

/// Connections, one for each caller at a time, kept for the next.
class Pool {
public:
    explicit Pool(const Settings& settings) : settings_(settings) {}

    /// One that works as far as can be seen. Nobody waits for another caller.
    [[nodiscard]] Result<std::unique_ptr<Connection>> take(const Budget& budget);
    /// Broken ones are let go.
    void give(std::unique_ptr<Connection> connection);
    /// After one broke, the others are probably no better.
    void drop_idle();

private:
    [[nodiscard]] Result<void> wait_for_turn(const Budget& budget) const;

    const Settings& settings_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_{};  ///< Guarded by mutex_.
    int failures_ = 0;         ///< Guarded by mutex_. Attempts to connect since the last success.
    Boottime next_attempt_{};  ///< Guarded by mutex_. In real time.
};

}  // namespace holdfast::stores::postgres
