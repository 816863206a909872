// Goal: the proxy holds and delays what the nemesis says, in the one direction that it says, and loses none of it.
#include "support/servers/loopback.hpp"
#include "support/servers/proxy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>

namespace holdfast::tests {
namespace {

void say(const base::Fd& to, const std::string& text) {
    ASSERT_EQ(send(to.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// What is there, or that it is the end; waits for it unless `flags` say otherwise. Nothing: it did not come.
std::string heard(const base::Fd& from, int flags = 0) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(from.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::array<char, 64> text{};
    const ssize_t size = recv(from.get(), text.data(), text.size(), flags);
    if (size == 0) return "the end";
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

/// A client and a server with a proxy between them.
class RoadTest : public testing::Test {
protected:
    void SetUp() override {
        const sockaddr_in address = loopback(proxy_.port());
        ASSERT_EQ(connect(client_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        server_ = base::Fd(accept(listening_.get(), nullptr, nullptr));
    }

    /// The proxy has seen all that was said before: it works in rounds, and at least one is over.
    void let_a_round_pass(const base::Fd& from, const base::Fd& to) {
        for (const std::string word : {"one", "two"}) {
            say(from, word);
            ASSERT_EQ(heard(to), word);
        }
    }
    static base::Fd tcp() { return base::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
    std::uint16_t listen_somewhere() {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        auto* const where = reinterpret_cast<sockaddr*>(&address);
        if (bind(listening_.get(), where, size) != 0 || listen(listening_.get(), 1) != 0 ||
            getsockname(listening_.get(), where, &size) != 0)
            throw std::runtime_error("cannot listen");
        return ntohs(address.sin_port);
    }

    base::Fd listening_ = tcp();
    Proxy proxy_{listen_somewhere()};
    base::Fd client_ = tcp();
    base::Fd server_;
};

TEST_F(RoadTest, ThatHoldsRequestsLetsRepliesPassAndDeliversLate) {
    proxy_.become({.holds_requests = true});
    say(client_, "request");
    let_a_round_pass(server_, client_);
    EXPECT_EQ(heard(server_, MSG_DONTWAIT), "");
    proxy_.become({});
    EXPECT_EQ(heard(server_), "request");
}

TEST_F(RoadTest, ThatHoldsRepliesLetsRequestsPassAndDeliversLate) {
    proxy_.become({.holds_replies = true});
    say(server_, "reply");
    let_a_round_pass(client_, server_);
    EXPECT_EQ(heard(client_, MSG_DONTWAIT), "");
    proxy_.become({});
    EXPECT_EQ(heard(client_), "reply");
}

// As with lost packets: the bytes of a client that gave up and left still arrive.
TEST_F(RoadTest, DeliversWhatSomebodySaidBeforeItWentAway) {
    proxy_.become({.holds_requests = true});
    say(client_, "request");
    shutdown(client_.get(), SHUT_WR);
    let_a_round_pass(server_, client_);
    proxy_.become({});
    EXPECT_EQ(heard(server_), "request");
    EXPECT_EQ(heard(server_), "the end");
}

TEST_F(RoadTest, WithADelayIsNeverFaster) {
    const std::chrono::milliseconds delay{30};
    proxy_.become({.delay = delay});
    const auto begun = std::chrono::steady_clock::now();
    say(client_, "request");
    EXPECT_EQ(heard(server_), "request");
    say(server_, "reply");
    EXPECT_EQ(heard(client_), "reply");
    EXPECT_GE(std::chrono::steady_clock::now() - begun, 2 * delay);
}

TEST_F(RoadTest, LosesAsManyMessagesAsWereArranged) {
    proxy_.arrange(1, Fate::lose_request, 2);
    say(client_, "lost");
    EXPECT_EQ(heard(client_), "the end");
    client_ = tcp();
    SetUp();
    say(client_, "lost, too");
    EXPECT_EQ(heard(client_), "the end");
    client_ = tcp();
    SetUp();
    say(client_, "request");
    EXPECT_EQ(heard(server_), "request");
}

}  // namespace
}  // namespace holdfast::tests
