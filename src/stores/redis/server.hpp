#pragma once

#include "stores/common/pool.hpp"
#include "stores/redis/connection.hpp"

namespace holdfast::stores::redis {

/// What may happen to a command that is sent and not answered.
enum class Effect {
    none,    ///< It only reads. Sent again on a fresh connection, then `store_unavailable`.
    changes  ///< `outcome_unknown`.
};

/// One Redis server, asked over as many connections as there are calls under way. May be used from any thread.
class Server {
public:
    Server(Address address, const Clock& clock)
        : address_(std::move(address)),
          clock_(clock),
          pool_([this](const CallBudget& budget) { return Connection::open(address_, budget); }) {}

    /// The answers to all commands, each of which may be an error of the server. A connection that was closed
    /// meanwhile is replaced.
    [[nodiscard]] Result<std::vector<Message>> exchange(std::span<const Command> commands, Effect effect,
                                                        Deadline deadline);
    /// One answer, which is no error. Only for commands that change nothing.
    [[nodiscard]] Result<Message> ask(const Command& command, Deadline deadline);

    [[nodiscard]] const Address& address() const { return address_; }

private:
    const Address address_;
    const Clock& clock_;
    Pool<Connection> pool_;
};

}  // namespace holdfast::stores::redis
