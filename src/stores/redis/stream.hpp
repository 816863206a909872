#pragma once

#include "base/fd.hpp"
#include "stores/common/call_budget.hpp"
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
    [[nodiscard]] static Result<Stream> open(const Address& address, const CallBudget& budget);

    Stream(Stream&&) = default;
    Stream& operator=(Stream&&) = default;

    [[nodiscard]] int fd() const { return socket_.get(); }

    /// An error means that the end of `bytes` never left, so that no server can have acted on them.
    [[nodiscard]] std::expected<void, std::string> write(std::string_view bytes, const CallBudget& budget);
    /// At least one byte.
    [[nodiscard]] std::expected<std::size_t, std::string> read(std::span<char> into, const CallBudget& budget);
    /// What is there already; zero if nothing is.
    [[nodiscard]] std::expected<std::size_t, std::string> read_now(std::span<char> into);
    /// Nothing to read and not closed: what a connection between two requests looks like.
    [[nodiscard]] bool is_quiet() const;

private:
    explicit Stream(base::Fd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] std::expected<void, std::string> shake_hands(const CallBudget& budget);
    [[nodiscard]] std::expected<void, std::string> send_all(std::string_view bytes, const CallBudget& budget) const;
    [[nodiscard]] std::expected<std::size_t, std::string> receive(std::span<char> into) const;

    base::Fd socket_;
    std::unique_ptr<TlsSession> tls_{};
};

}  // namespace holdfast::stores::redis
