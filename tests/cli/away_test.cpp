// Goal: a command that follows a store goes on when its server was away for a moment. Method: a proxy in front of a
// real server leaves, somebody who answers nothing takes its place, and it comes back.
#include "base/fd.hpp"
#include "sandbox.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace holdfast::cli_test {
namespace {

/// Takes connections on a port of this host, and ends them at once.
void refuse_connections(std::uint16_t port, int count) {
    const base::Fd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listening.get(), 8), 0);
    for (int i = 0; i < count; ++i) base::Fd(accept(listening.get(), nullptr, nullptr)).reset();
}

TEST(WatchOfAServer, GoesOnWhenTheServerIsBack) {
    Sandbox box;
    const tests::ServerPlace place("redis", tests::shared_server_port("redis"));
    tests::Proxy proxy(tests::shared_server_port("redis"));
    const Args direct{"run", "a", "--store", place.url(), "--", "true"};
    ASSERT_EQ(box.run(direct).status, 0);
    Running watch = box.start({"watch", "--store", place.url(proxy.port())});
    ASSERT_TRUE(eventually([&] {
        EXPECT_EQ(box.run(direct).status, 0);
        return watch.out().contains("acquired");
    })) << watch.err();
    proxy.leave();
    refuse_connections(proxy.port(), 3);
    proxy.come_back();
    const Args later{"run", "later", "--store", place.url(), "--", "true"};
    ASSERT_EQ(box.run(later).status, 0);
    EXPECT_TRUE(eventually([&] { return watch.out().contains("later"); })) << watch.err();
    watch.signal(SIGINT);
    EXPECT_EQ(watch.wait().status, 128 + SIGINT);
}

}  // namespace
}  // namespace holdfast::cli_test
