#pragma once

#include "base/call_budget.hpp"
#include "base/fd.hpp"
#include "stores/redis/tls.hpp"

#include <expected>
#include <memory>
#include <span>
#include <string>

namespace holdfast::stores::redis {

/// Bytes to and from the server, over TLS or not. Every wait has an end.
class Stream {
public:
    /// Connects and, for TLS, has verified the server when it returns.
    [[nodiscard]] static Result<Stream> open(const Address& address, const base::CallBudget& budget);

    Stream(Stream&&) = default;
    Stream& operator=(Stream&&) = default;

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// After an error the end of `bytes` was never sent, so no server can have acted on them.
    [[nodiscard]] std::expected<void, std::string> write(std::string_view bytes, const base::CallBudget& budget);
    /// Waits for at least one byte.
    [[nodiscard]] std::expected<std::size_t, std::string> read(std::span<char> into, const base::CallBudget& budget);
    /// Reads without waiting; zero if nothing has arrived.
    [[nodiscard]] std::expected<std::size_t, std::string> read_now(std::span<char> into);
    /// Nothing to read, and not closed: as a connection between two requests should be.
    [[nodiscard]] bool is_quiet() const;

private:
    explicit Stream(base::Fd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] std::expected<void, std::string> shake_hands(const base::CallBudget& budget);
    [[nodiscard]] std::expected<void, std::string> send_all(std::string_view bytes,
                                                            const base::CallBudget& budget) const;
    [[nodiscard]] std::expected<std::size_t, std::string> receive(std::span<char> into) const;

    base::Fd socket_;
    std::unique_ptr<TlsSession> tls_{};
};

}  // namespace holdfast::stores::redis
