// Goal: nobody on the way to a daemon elsewhere reads a token or a lease, or answers in its place. Method: a daemon
// with a certificate for its address, asked under that and under others.
#include "holdfast/open.hpp"
#include "support/daemon.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/certificate.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class HttpTls : public testing::Test {
protected:
    [[nodiscard]] Result<std::unique_ptr<Store>> open(std::string_view host, std::string_view parameters) const {
        return open_store(fmt::format("https://{}:{}{}", host, daemon_.port(), parameters));
    }

    const ServerFolder folder_;
    const Certificate right_ = make_certificate(folder_, "right", "IP:127.0.0.1");
    const Certificate wrong_ = make_certificate(folder_, "wrong", "IP:127.0.0.1");
    const std::unique_ptr<Store> behind_ = must(open_store("memory:"));
    const DaemonInside daemon_{*behind_, host_clock(), {.tls_cert = right_.file, .tls_key = right_.key}};
};

TEST_F(HttpTls, OnlyTheDaemonThatTheCertificateNamesIsTrusted) {
    const Deadline soon = Deadline::in(host_clock(), 30s);
    const auto store = must(open("127.0.0.1", "?ca=" + right_.file));
    const Acquire alice = by_alice(lock("x"), 1h);
    const std::uint64_t seq = must(store->apply_one(alice, soon)).lock.seq;
    EXPECT_EQ(must(store->inspect(lock("x"), soon)).seq, seq);
    EXPECT_THAT(store->wait_for_change({.name = lock("x"), .seen_seq = seq - 1}, soon), Granted());

    EXPECT_THAT(open("127.0.0.1", "?ca=" + wrong_.file), RefusedWith(Errc::config)) << "another's word";
    EXPECT_THAT(open("127.0.0.1", ""), RefusedWith(Errc::config)) << "nobody's word";
    EXPECT_THAT(open("127.0.0.1", "?ca=/nowhere.pem"), RefusedWith(Errc::config));
    EXPECT_THAT(open("localhost", "?ca=" + right_.file), RefusedWith(Errc::config)) << "it is not for that name";
}

TEST_F(HttpTls, IsNotLeftAndNotBegunByMistake) {
    EXPECT_THAT(open_store(fmt::format("http://127.0.0.1:{}", daemon_.port())), RefusedWith(Errc::store_unavailable));
    const DaemonInside plain(*behind_, host_clock());
    EXPECT_THAT(open_store(fmt::format("https://127.0.0.1:{}?ca={}", plain.port(), right_.file)),
                RefusedWith(Errc::store_unavailable));
}

}  // namespace
}  // namespace holdfast::tests
