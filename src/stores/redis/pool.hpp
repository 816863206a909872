#pragma once

#include "base/attempts.hpp"
#include "stores/redis/connection.hpp"

#include <mutex>

namespace holdfast::stores::redis {

/// What may happen to a command that is sent and not answered.
enum class Effect {
    none,    ///< It only reads. Sent again on a fresh connection, then `store_unavailable`.
    changes  ///< `outcome_unknown`.
};

/// Connections to one server: one for each caller that is busy, kept for the next. May be used by any thread.
class Pool {
public:
    Pool(Address address, const Clock& clock) : address_(std::move(address)), clock_(clock) {}

    /// The answers to all commands, each of which may be an error of the server. A connection that was closed
    /// meanwhile is replaced.
    [[nodiscard]] Result<std::vector<Message>> exchange(std::span<const Command> commands, Effect effect,
                                                        Deadline deadline);
    /// One answer, which is no error. Only for commands that change nothing.
    [[nodiscard]] Result<Message> ask(const Command& command, Deadline deadline);

    [[nodiscard]] const Address& address() const { return address_; }

private:
    [[nodiscard]] std::unique_ptr<Connection> idle();
    [[nodiscard]] Result<std::unique_ptr<Connection>> open(const Patience& patience);
    void keep(std::unique_ptr<Connection> connection);

    const Address address_;
    const Clock& clock_;
    base::Attempts attempts_{};

    std::mutex mutex_;
    std::vector<std::unique_ptr<Connection>> idle_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::redis
