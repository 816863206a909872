#pragma once

#include "sql/postgres/connection.hpp"

struct pg_cancel;

namespace holdfast::sql::postgres {

/// Cancels statements of one connection from another thread. Independent of the connection once it is made: it may
/// outlive it, and then cancels nothing.
class Canceller {
public:
    explicit Canceller(const Connection& connection);

    /// Asks the server to cancel what the session runs now; that statement fails with `ErrorClass::cancelled`. The
    /// server answers nothing, so success means only that the request arrived: the statement may have been over by
    /// then. Uses a connection of its own, with the time limits of the operating system.
    [[nodiscard]] Result<void> cancel() const;

private:
    struct Free {
        void operator()(pg_cancel* handle) const;
    };
    std::unique_ptr<pg_cancel, Free> handle_;
};

}  // namespace holdfast::sql::postgres
