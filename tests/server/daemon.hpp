#pragma once

#include "cli/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// A real `holdfast serve` on a free port, and clients of it that can also behave badly.
namespace holdfast::server_test {

struct Answer {
    int status = 0;                                ///< 0: the connection was closed without one.
    std::map<std::string, std::string> headers{};  ///< The names in lower case.
    std::string body{};

    /// A failed test unless the body is one JSON document.
    [[nodiscard]] cli_test::Document json() const;
    [[nodiscard]] std::string code() const { return json().text("/error/code"); }
};

/// One connection. Everything that does not come within half a minute fails the test.
class Client {
public:
    /// `receive_buffer`: what the kernel takes for a client that does not read. 0: as usual.
    explicit Client(std::uint16_t port, int receive_buffer = 0);
    Client(Client&& other) noexcept;
    Client& operator=(Client&&) = delete;
    ~Client();

    using Headers = std::map<std::string, std::string>;

    /// Sends a request and reads its answer.
    [[nodiscard]] Answer call(std::string_view method, std::string_view target, std::string_view body = {},
                              const Headers& headers = {});
    /// Sends it, and goes on without waiting for the answer.
    void send_request(std::string_view method, std::string_view target, std::string_view body = {},
                      const Headers& headers = {});
    void send_raw(std::string_view bytes);
    /// The next answer, whole.
    [[nodiscard]] Answer read_answer();
    /// The next answer as far as its head; `read_chunk` and `read_to` give what follows.
    [[nodiscard]] Answer read_head();
    /// Of a body in chunks: the next bytes. Empty at its end, and when the connection is closed.
    [[nodiscard]] std::string read_chunk();
    /// Of a body that ends with the connection: everything up to the next `mark`, with it.
    [[nodiscard]] std::string read_to(std::string_view mark);
    /// True when the daemon has closed the connection.
    [[nodiscard]] bool is_closed();
    /// Whether nothing came for so long.
    [[nodiscard]] bool is_silent_for(std::chrono::milliseconds time);
    void hang_up();
    /// The daemon sees the end of what this client sends.
    void end_output();

private:
    [[nodiscard]] bool receive();
    [[nodiscard]] std::optional<std::string> line();

    int socket_ = -1;
    std::string input_{};
};

/// A daemon in a sandbox of its own. Ended with the object.
class Daemon {
public:
    explicit Daemon(const cli_test::Args& args = {}, const std::string& store = "sqlite:locks.db");

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] Client client() const { return Client(port_); }
    [[nodiscard]] Answer post(std::string_view target, std::string_view body) const;
    [[nodiscard]] Answer get(std::string_view target) const;
    /// With SIGTERM; its end.
    [[nodiscard]] cli_test::Ended stop();
    /// With SIGKILL, and starts another one on the same store and port.
    void kill_and_restart();
    [[nodiscard]] std::string log() const { return running_->err(); }

    cli_test::Sandbox box{};

private:
    void start(std::uint16_t port);

    cli_test::Args args_;
    std::string store_;
    int starts_ = 0;
    std::optional<cli_test::Running> running_{};
    std::uint16_t port_ = 0;
};

}  // namespace holdfast::server_test
