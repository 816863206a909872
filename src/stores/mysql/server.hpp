#pragma once

#include "stores/common/pool.hpp"
#include "stores/mysql/server_facts.hpp"

namespace holdfast::stores::mysql {

/// The server that a URL names, or the first of several that answers: its connections, and what it is. May be used from
/// any thread.
class Server {
public:
    using Borrowed = Pool<Connection>::Borrowed;

    Server(Address address, const Clock& clock)
        : address_(std::move(address)),
          clock_(clock),
          pool_([this](const CallBudget& budget) { return connect(budget); }) {}

    [[nodiscard]] Result<Borrowed> take(Deadline deadline) { return pool_.take({clock_, deadline}); }
    /// Never one that was used before.
    [[nodiscard]] Result<Borrowed> take_fresh(Deadline deadline) { return pool_.take_fresh({clock_, deadline}); }

    /// Of the server that was connected to last.
    [[nodiscard]] ServerFacts facts() const;
    [[nodiscard]] const Address& address() const { return address_; }

private:
    [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const CallBudget& budget);
    [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const Address::Endpoint& endpoint, Deadline deadline);

    const Address address_;
    const Clock& clock_;
    mutable std::mutex mutex_;
    ServerFacts facts_{};  ///< Guarded by mutex_.
    Pool<Connection> pool_;
};

}  // namespace holdfast::stores::mysql
