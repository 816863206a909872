#pragma once

#include "stores/common/pool.hpp"
#include "stores/mysql/server_facts.hpp"

namespace holdfast::stores::mysql {

/// The server that a URL names, or the first of several that takes changes, or the first that answers: its connections,
/// and what it is. May be used from any thread.
class Server {
public:
    using Borrowed = Pool<Connection>::Borrowed;

    Server(Address address, const Clock& clock)
        : address_(std::move(address)),
          clock_(clock),
          pool_([this](const base::CallBudget& budget) { return connect(budget); }) {}

    [[nodiscard]] Result<Borrowed> take(Deadline deadline) { return pool_.take({clock_, deadline}); }
    /// Always a new one.
    [[nodiscard]] Result<Borrowed> take_fresh(Deadline deadline) { return pool_.take_fresh({clock_, deadline}); }

    /// The facts of the server of the last new connection.
    [[nodiscard]] ServerFacts facts() const;
    [[nodiscard]] const Address& address() const { return address_; }
    /// Why a server that is read-only is of no use for a change.
    [[nodiscard]] Error is_read_only() const;

private:
    struct Connected {
        std::unique_ptr<Connection> connection;
        ServerFacts facts;
    };

    [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const base::CallBudget& budget);
    [[nodiscard]] Result<Connected> connect(const Address::Endpoint& endpoint, Deadline deadline) const;
    [[nodiscard]] std::unique_ptr<Connection> use(Connected connected);

    const Address address_;
    const Clock& clock_;
    mutable std::mutex mutex_;
    ServerFacts facts_{};  ///< Guarded by mutex_.
    Pool<Connection> pool_;
};

}  // namespace holdfast::stores::mysql
