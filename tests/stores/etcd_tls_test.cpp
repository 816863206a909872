// Goal: nobody on the way to an etcd elsewhere reads a password or answers in its place; and nothing of a lock is bound
// to a lease of etcd. Method: an etcd with a certificate, reached under names that it is for and others. 0.0.0.0 leads
// to this host, and is not known to.

#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/certificate.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline patient() { return Deadline::in(host_clock(), 30s); }

bool answers(std::uint16_t port) {
    try {
        return EtcdByHand(port).leads();
    } catch (const std::exception&) {
        return false;
    }
}

class EtcdTls : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<Server> start() const {
        auto data = std::make_shared<ServerFolder>();
        const std::string peers = fmt::format("http://127.0.0.1:{}", free_port());
        const std::string clients = fmt::format("http://127.0.0.1:{},https://127.0.0.1:{}", plain_port_, tls_port_);
        Server::Plan plan{.name = "etcd",
                          .command = {"/usr/bin/etcd",
                                      "--name",
                                      "one",
                                      "--data-dir",
                                      (data->path() / "data").string(),
                                      "--listen-client-urls",
                                      clients,
                                      "--advertise-client-urls",
                                      clients,
                                      "--listen-peer-urls",
                                      peers,
                                      "--initial-advertise-peer-urls",
                                      peers,
                                      "--initial-cluster",
                                      "one=" + peers,
                                      "--log-level",
                                      "error",
                                      "--cert-file",
                                      right_.file,
                                      "--key-file",
                                      right_.key},
                          .is_ready = [port = plain_port_] { return answers(port); }};
        return std::make_unique<Server>(std::move(plan), std::move(data), plain_port_);
    }
    [[nodiscard]] static auto open(std::string_view host, std::uint16_t port, std::string_view parameters) {
        return open_store(fmt::format("etcd://{}:{}/locks{}", host, port, parameters));
    }

    const ServerFolder folder_;
    const Certificate right_ = make_certificate(folder_, "right", "IP:0.0.0.0");
    const Certificate wrong_ = make_certificate(folder_, "wrong", "IP:0.0.0.0");
    const std::uint16_t plain_port_ = free_port();
    const std::uint16_t tls_port_ = free_port();
    const std::unique_ptr<Server> server_ = start();
};

TEST_F(EtcdTls, OnlyTheServerThatTheCertificateNamesIsTrusted) {
    const auto store = must(open("0.0.0.0", tls_port_, "?tls_ca=" + right_.file));
    const std::uint64_t seq = must(store->apply_one(by_alice(lock("x")), patient())).lock.seq;
    EXPECT_THAT(store->wait_for_change({.name = lock("x"), .seen_seq = seq - 1}, patient()), Granted());
    // Written as it was, so that only a watch can tell of it.
    const EtcdByHand by_hand(plain_port_);
    const std::string record = by_hand.get("locks/l/x").value();
    const Watch watch{.name = lock("x"), .seen_seq = seq};
    auto woken = std::async(std::launch::async, [&] { return store->wait_for_change(watch, patient()); });
    for (const auto until = patient(); woken.wait_for(100ms) != std::future_status::ready;) {
        ASSERT_FALSE(until.passed(host_clock()));
        by_hand.put("locks/l/x", record);
    }

    EXPECT_THAT(open("0.0.0.0", tls_port_, "?tls_ca=" + wrong_.file), RefusedWith(Errc::store_unavailable))
        << "another's word";
    EXPECT_THAT(open("0.0.0.0", tls_port_, ""), RefusedWith(Errc::store_unavailable)) << "nobody's word";
    for (const char* host : {"localhost", "127.0.0.1"})
        EXPECT_THAT(open(host, tls_port_, "?tls=verify&tls_ca=" + right_.file), RefusedWith(Errc::store_unavailable))
            << "it is not for " << host;
}

TEST_F(EtcdTls, AHostElsewhereIsAskedInPlainOnlyIfTheUserSaysSo) {
    EXPECT_THAT(open("0.0.0.0", plain_port_, "?tls=off"), Granted());
    EXPECT_THAT(open("127.0.0.1", plain_port_, ""), Granted());
    EXPECT_THAT(open("0.0.0.0", plain_port_, ""), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(open("127.0.0.1", plain_port_, fmt::format("?tls=verify&tls_ca={}", right_.file)),
                RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(open_store(fmt::format("etcd://127.0.0.1:{},0.0.0.0:{}/locks?tls_ca={}", plain_port_, plain_port_,
                                       right_.file)),
                RefusedWith(Errc::store_unavailable))
        << "one of them is elsewhere";
}

// A leader that was stopped and goes on revokes leases that were kept alive all the time: 3 of 32 times. A client that
// has none loses none.
TEST(EtcdLeases, NoKeyIsBoundToOne) {
    const auto server = start_etcd_server();
    const EtcdByHand by_hand(server->port());
    const auto store = must(open_store(fmt::format("etcd://127.0.0.1:{}/locks", server->port())));
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, patient()));
    EXPECT_FALSE(store->apply_one(queued(by_bob(lock("x"))), patient()));
    must(store->apply_one(renewal(alice), patient()));
    // A range from the first key to the last.
    const std::string all = by_hand.call("/v3/kv/range", R"({"key":"AA==","range_end":"AA=="})");
    EXPECT_GE(by_hand.keys("locks/").size(), 4U);
    EXPECT_THAT(all, testing::Not(testing::HasSubstr("\"lease\"")));
    EXPECT_THAT(by_hand.call("/v3/lease/leases", "{}"), testing::Not(testing::HasSubstr("\"ID\"")));
}

}  // namespace
}  // namespace holdfast::tests
