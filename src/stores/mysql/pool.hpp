#pragma once

#include "base/attempts.hpp"
#include "stores/mysql/server_facts.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::stores::mysql {

class Pool;

/// A connection while somebody uses it. Goes back to the pool, or is closed if it broke.
class Lent {
public:
    Lent(Pool& pool, std::unique_ptr<Connection> connection, bool used_before)
        : pool_(&pool), connection_(std::move(connection)), used_before_(used_before) {}
    Lent(Lent&&) = default;
    Lent& operator=(Lent&&) = delete;
    ~Lent();

    Connection* operator->() { return connection_.get(); }
    Connection& operator*() { return *connection_; }
    /// It may have died since; a fresh one has just been heard from.
    [[nodiscard]] bool used_before() const { return used_before_; }

private:
    Pool* pool_;
    std::unique_ptr<Connection> connection_;
    bool used_before_;
};

/// The connections of one store: one for each call that is under way, kept for the next.
class Pool {
public:
    Pool(Address address, const Clock& clock) : address_(std::move(address)), clock_(clock) {}

    [[nodiscard]] Result<Lent> take(Deadline deadline);
    /// Never one that was used before.
    [[nodiscard]] Result<Lent> take_fresh(Deadline deadline);

    /// Of the server that was connected to last.
    [[nodiscard]] ServerFacts facts() const;
    [[nodiscard]] const Address& address() const { return address_; }

private:
    friend class Lent;

    void give_back(std::unique_ptr<Connection> connection);
    [[nodiscard]] Result<std::unique_ptr<Connection>> connect(const Address::Endpoint& endpoint, Deadline deadline);

    const Address address_;
    const Clock& clock_;
    base::Attempts attempts_{};

    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_{};  ///< Guarded by mutex_.
    ServerFacts facts_{};                              ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::mysql
