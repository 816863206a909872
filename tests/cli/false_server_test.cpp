// Goal: a program that answers on a server's port cannot control the user's terminal. Method: a socket that answers
// every command with an error text of our own.
#include "base/fd.hpp"
#include "cli/sandbox.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

namespace holdfast::cli_test {
namespace {

/// Answers every connection until it is destroyed.
class FalseServer {
public:
    explicit FalseServer(std::string answer) : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof here;
        auto* const address = reinterpret_cast<sockaddr*>(&here);
        if (bind(listener_.get(), address, size) != 0 || listen(listener_.get(), 8) != 0 ||
            getsockname(listener_.get(), address, &size) != 0)
            throw std::runtime_error("no port is free");
        port_ = ntohs(here.sin_port);
        thread_ = std::jthread([this] { serve(); });
    }
    ~FalseServer() { shutdown(listener_.get(), SHUT_RDWR); }
    FalseServer(const FalseServer&) = delete;
    FalseServer& operator=(const FalseServer&) = delete;

    [[nodiscard]] int port() const { return port_; }

private:
    void serve() const {
        while (true) {
            const base::Fd client(accept(listener_.get(), nullptr, nullptr));
            if (!client) return;
            std::array<char, 4096> asked{};
            while (recv(client.get(), asked.data(), asked.size(), 0) > 0)
                if (send(client.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0) break;
        }
    }

    const std::string answer_;
    const base::Fd listener_;
    int port_ = 0;
    std::jthread thread_;
};

TEST(FalseServerText, CannotDriveATerminal) {
    const FalseServer server("-ERR \x1b]0;owned\x07 \x1b[2J\r\n-ERR \x1b[2J\r\n");
    Sandbox box;
    const auto ended = box.run({"status", "a", "--store", fmt::format("redis://127.0.0.1:{}/0", server.port())});
    EXPECT_EQ(ended.status, 69);
    EXPECT_THAT(ended.err, testing::HasSubstr("owned")) << "it was heard";
    EXPECT_THAT(ended.err + ended.out, testing::Not(testing::HasSubstr("\x1b")));
}

}  // namespace
}  // namespace holdfast::cli_test
