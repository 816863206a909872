#pragma once

#include "stores/redis/config.hpp"

#include <expected>
#include <memory>
#include <span>
#include <string>

struct ssl_st;

namespace holdfast::stores::redis {

/// The TLS of one connection, without its socket: bytes go in and out of memory, and the stream carries
/// them. OpenSSL's own sockets would raise SIGPIPE in programs that do not expect it.
class TlsSession {
public:
    /// What a step needs before it can continue.
    enum class Need { nothing, input, closed };

    [[nodiscard]] static Result<std::unique_ptr<TlsSession>> client_of(const Address& address);

    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;
    ~TlsSession();

    /// One step of the handshake. An error is a refusal of the server's certificate, or no TLS at all.
    [[nodiscard]] std::expected<Need, std::string> shake_hands();
    /// Decrypted bytes that have arrived. Zero with `Need::input` if there are none yet.
    [[nodiscard]] std::expected<Need, std::string> read(std::span<char> into, std::size_t& count);
    [[nodiscard]] std::expected<void, std::string> write(std::string_view bytes);

    /// Takes bytes from the network.
    void feed(std::span<const char> bytes);
    /// Bytes to send to the network.
    [[nodiscard]] std::string take_output();

private:
    explicit TlsSession(ssl_st* ssl) : ssl_(ssl) {}
    [[nodiscard]] std::expected<Need, std::string> judge(int result) const;
    ssl_st* ssl_;
};

}  // namespace holdfast::stores::redis
