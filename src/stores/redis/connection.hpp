#pragma once

#include "stores/redis/command.hpp"
#include "stores/redis/message.hpp"
#include "stores/redis/stream.hpp"

#include <optional>
#include <span>
#include <vector>

namespace holdfast::stores::redis {

/// Why there is no answer.
struct ExchangeError {
    bool sent = false;  ///< The server may have acted.
    std::string why{};
};

/// The meaning of a server's error. After each of these errors nothing was changed.
[[nodiscard]] std::optional<Error> known_refusal(const Address& address, std::string_view text);
/// The same, for commands that change nothing.
[[nodiscard]] Error refusal(const Address& address, std::string_view text);

/// One connection to a server that has accepted us. For one thread at a time.
class Connection {
public:
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const Address& address,
                                                                  const base::CallBudget& budget);

    /// Sends all commands at once and reads their answers, of which each may be an error. After a failure the
    /// connection cannot be used again.
    [[nodiscard]] std::expected<std::vector<Message>, ExchangeError> exchange(std::span<const Command> commands,
                                                                              const base::CallBudget& budget);

    /// No exchange was interrupted, so the next answer belongs to the next command.
    [[nodiscard]] bool is_usable() const { return is_usable_; }
    /// The server has not closed it, as far as can be known without waiting.
    [[nodiscard]] bool is_alive() const { return stream_.is_quiet(); }

    /// It was a replica when it accepted us: it takes no changes, and what it shows may be old.
    [[nodiscard]] bool is_replica() const { return is_replica_; }

    /// For pub/sub: a command whose answers are read with `receive_now`.
    [[nodiscard]] std::expected<void, std::string> send(const Command& command, const base::CallBudget& budget);
    /// The next message, if it has arrived completely.
    [[nodiscard]] std::expected<std::optional<Message>, std::string> receive_now();
    [[nodiscard]] int fd() const { return stream_.fd(); }

private:
    explicit Connection(Stream stream);
    [[nodiscard]] Result<void> introduce(const Address& address, const base::CallBudget& budget);
    [[nodiscard]] std::expected<std::optional<Message>, std::string> next();
    [[nodiscard]] std::expected<Message, std::string> receive(const base::CallBudget& budget);

    Stream stream_;
    bool is_usable_ = true;
    bool is_replica_ = false;
    std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader_;
};

}  // namespace holdfast::stores::redis
