#pragma once

#include "stores/etcd/config.hpp"
#include "stores/etcd/wire/http.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::stores::etcd {

/// Bytes to a node and back, encrypted where its URL says so; libcurl finds it, connects and checks its certificate.
/// For one thread at a time.
class Connection {
public:
    /// Or an error text; then nothing was sent.
    [[nodiscard]] static std::expected<Connection, std::string> open(const Endpoint& endpoint,
                                                                     const std::string& ca_file,
                                                                     std::chrono::milliseconds timeout);

    /// How many bytes were taken, 0 if it must wait. Absent if the connection is broken.
    [[nodiscard]] std::optional<std::size_t> send(std::string_view bytes);
    /// How many bytes came, 0 if none did yet. Absent if there will be no more.
    [[nodiscard]] std::optional<std::size_t> receive(std::span<char> into);

    enum class For { reading, reading_and_writing };
    /// Sleeps until the socket is ready, or `wake` can be read, or `time` is over. -1: no `wake`.
    void wait(For what, std::chrono::milliseconds time, int wake) const;

private:
    explicit Connection(CurlHandle handle, int socket) : handle_(std::move(handle)), socket_(socket) {}

    CurlHandle handle_;
    int socket_;
};

}  // namespace holdfast::stores::etcd
