#pragma once

#include "base/attempts.hpp"
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
    const Settings& settings_;
    base::Attempts attempts_{};
    std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::postgres
