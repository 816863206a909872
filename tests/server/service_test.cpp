// The real daemon under a manager of services: it takes the socket that is handed over and says what it does.
#include "base/fd.hpp"
#include "server/daemon.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::server_test {
namespace {

using testing::HasSubstr;

class UnderAManager : public testing::Test {
protected:
    void SetUp() override {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, notify_.c_str(), notify_.size());
        ASSERT_EQ(bind(messages_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    void TearDown() override {
        if (child_ <= 0) return;
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }

    base::Fd listener(in_addr_t where) {
        base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(where);
        EXPECT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(listen(socket.get(), 16), 0);
        socklen_t size = sizeof address;
        EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
        port_ = ntohs(address.sin_port);
        return socket;
    }

    void start(int socket) {
        child_ = fork();
        if (child_ != 0) return;
        clearenv();
        for (const auto& [name, value] : box_.environment) setenv(name.c_str(), value.c_str(), 1);
        setenv("NOTIFY_SOCKET", notify_.c_str(), 1);
        setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
        setenv("LISTEN_FDS", "1", 1);
        if (chdir(box_.work.c_str()) != 0 || dup2(socket, 3) != 3) _exit(250);
        execl(box_.program.c_str(), "holdfast", "serve", "--store", "sqlite:locks.db", nullptr);
        _exit(251);
    }

    [[nodiscard]] std::string next_message() const {
        pollfd wait{.fd = messages_.get(), .events = POLLIN, .revents = 0};
        if (poll(&wait, 1, 60'000) != 1) return "nothing";
        std::array<char, 512> text{};
        const ssize_t got = recv(messages_.get(), text.data(), text.size(), 0);
        return got < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(got));
    }

    [[nodiscard]] int end() {
        int status = 0;
        waitpid(child_, &status, 0);
        child_ = 0;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    cli_test::Sandbox box_{};
    const std::string notify_ = (box_.root / "notify").string();
    base::Fd messages_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    std::uint16_t port_ = 0;
    pid_t child_ = 0;
};

TEST_F(UnderAManager, ItServesTheSocketThatItIsHandedAndSaysSo) {
    const base::Fd socket = listener(INADDR_LOOPBACK);
    // Connections wait in the socket until the daemon is there.
    Client early(port_);
    early.send_request("GET", "/healthz");
    start(socket.get());
    EXPECT_THAT(next_message(), HasSubstr("READY=1\n"));
    EXPECT_EQ(early.read_answer().status, 200);
    EXPECT_EQ(Client(port_).call("POST", "/v1/acquire", R"({"name":"a","holder":"x"})").status, 200);
    kill(child_, SIGTERM);
    EXPECT_EQ(next_message(), "STOPPING=1");
    EXPECT_EQ(end(), 0);
}

TEST_F(UnderAManager, ASocketForOtherHostsNeedsTokensAndTlsAsAnyAddressDoes) {
    const base::Fd socket = listener(INADDR_ANY);
    start(socket.get());
    EXPECT_EQ(end(), 78);
}

}  // namespace
}  // namespace holdfast::server_test
