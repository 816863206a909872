#pragma once

#include "stores/common/pool.hpp"
#include "stores/redis/connection.hpp"

#include <atomic>

namespace holdfast::stores::redis {

/// What a command without an answer may have done.
enum class Effect {
    none,    ///< Nothing: it only reads. Sent again on a fresh connection, then `store_unavailable`.
    changes  ///< A change. Then the error is A change. Then the error is `outcome_unknown`.
};

/// One Redis server, with a connection for each call that is under way. May be used from any thread.
class Server {
public:
    Server(Address address, const Clock& clock)
        : address_(std::move(address)),
          clock_(clock),
          pool_([this](const base::CallBudget& budget) { return Connection::open(address_, budget); }) {}

    /// The answers to all commands; each may be an error of the server. A connection that was closed while idle is
    /// replaced.
    [[nodiscard]] Result<std::vector<Message>> exchange(std::span<const Command> commands, Effect effect,
                                                        Deadline deadline);
    /// The answer to one command; an error of the server is an error here. Only for commands that change nothing.
    [[nodiscard]] Result<Message> ask(const Command& command, Deadline deadline);

    [[nodiscard]] const Address& address() const { return address_; }

    /// Whether the server that was asked last was a replica when it was connected to.
    [[nodiscard]] bool is_replica() const { return is_replica_; }
    /// An error if the server is a replica by now. Cheap where it was none.
    [[nodiscard]] Result<void> expect_master(Deadline deadline);

private:
    const Address address_;
    const Clock& clock_;
    std::atomic<bool> is_replica_ = false;
    Pool<Connection> pool_;
};

}  // namespace holdfast::stores::redis
