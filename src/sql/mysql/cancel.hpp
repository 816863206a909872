#pragma once

#include "sql/mysql/connection.hpp"

namespace holdfast::sql::mysql {

/// Cancels what another connection runs, from another thread: `KILL QUERY` over a connection of its own. An account may
/// always do that to its own connections.
class Canceller {
public:
    /// `address` must outlive this. Refused with `store_unsafe` behind a proxy that gives out numbers of its own:
    /// `KILL` would hit somebody else's connection.
    [[nodiscard]] static Result<Canceller> of(Connection& connection, const Address& address,
                                              const Address::Endpoint& endpoint, const Clock& clock, Deadline deadline);

    /// The statement that the connection runs now fails with `ErrorClass::cancelled`. Without effect if it runs none.
    [[nodiscard]] Result<void> cancel(Deadline deadline) const;

private:
    Canceller(const Address& address, Address::Endpoint endpoint, const Clock& clock, std::uint64_t id)
        : address_(&address), endpoint_(std::move(endpoint)), clock_(&clock), id_(id) {}

    const Address* address_;
    Address::Endpoint endpoint_;
    const Clock* clock_;
    std::uint64_t id_;
};

}  // namespace holdfast::sql::mysql
