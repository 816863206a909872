// Goal: users and passwords, refusals of the server, and no secret in any text.
// Method: an etcd of its own with authentication switched on.

#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"
#include "support/variable.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

Deadline patient() { return Deadline::in(host_clock(), 30s); }

class EtcdAccess : public testing::Test {
protected:
    void SetUp() override { EtcdByHand(server_->port()).require_password("locks/"); }

    [[nodiscard]] std::string url(std::string_view user, std::string_view password, std::string_view prefix) const {
        return fmt::format("etcd://{}:{}@127.0.0.1:{}/{}", user, password, server_->port(), prefix);
    }
    [[nodiscard]] std::string good_url() const { return url(server_user_name, server_password, "locks"); }

    const std::unique_ptr<Server> server_ = start_etcd_server();
};

TEST_F(EtcdAccess, AUserThatIsAllowedToUsesTheStoreAlsoAfterTheServerForgotWhoItIs) {
    const auto store = must(open_store(good_url()));
    const Acquire alice = by_alice(lock("x"));
    must(store->apply_one(alice, patient()));
    // It forgets the tokens of a user whose password is changed, also if that is to the same.
    EtcdByHand root(server_->port());
    root.log_in("root", "root");
    root.call("/v3/auth/user/changepw",
              fmt::format(R"({{"name":"{}","password":"{}"}})", server_user_name, server_password));
    EXPECT_THAT(store->apply_one(renewal(alice), patient()), Granted());
    EXPECT_THAT(store->wait_for_change({.name = lock("x"), .seen_seq = 0}, patient()), Granted());
    for (const Finding& finding : store->examine(patient()))
        EXPECT_TRUE(finding.ok) << finding.name << ": " << finding.detail;
}

// libcurl would ask it otherwise, also with the password.
TEST_F(EtcdAccess, NoProxyOfTheEnvironmentIsAsked) {
    // Nobody listens there.
    const Variable one("http_proxy", "http://127.0.0.1:1");
    const Variable two("https_proxy", "http://127.0.0.1:1");
    const Variable three("ALL_PROXY", "http://127.0.0.1:1");
    const auto store = must(open_store(good_url()));
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), patient()), Granted());
}

// Every key that a transaction names must be one of those that the role is about, whether it comes to that or not.
TEST_F(EtcdAccess, ARoleForThePrefixIsEnoughForEverything) {
    const auto store = must(open_store(good_url()));
    const Acquire alice = by_alice(lock("x"));
    const FencingToken token = must(store->apply_one(alice, patient())).lock.token;
    EXPECT_THAT(store->apply_one(check(lock("x"), token), patient()), Granted());
    EXPECT_THAT(store->apply_one(renewal(alice), patient()), Granted());
    EXPECT_THAT(store->apply_one(Prune{lock("x"), 1, "root"}, patient()), Granted());
    EXPECT_THAT(store->history({}, patient()), Granted());
    EXPECT_THAT(store->list({.after = "a", .limit = 1}, patient()), Granted());
    EXPECT_FALSE(store->apply_one(queued(by_bob(lock("x"))), patient()));
    EXPECT_THAT(store->apply_one(release(alice), patient()), Granted());
}

TEST_F(EtcdAccess, ARefusedUserIsToldSoWithoutASecret) {
    const std::string other = url(server_user_name, "wrong-" + std::string(server_password), "locks");
    const std::string elsewhere = url(server_user_name, server_password, "elsewhere");
    const std::string nobody = fmt::format("etcd://127.0.0.1:{}/locks", server_->port());
    for (const std::string& wrong : {other, elsewhere, nobody}) {
        const auto opened = open_store(wrong);
        ASSERT_THAT(opened, RefusedWith(Errc::denied));
        EXPECT_THAT(opened.error().message, Not(HasSubstr(std::string(server_password))));
    }
}

TEST_F(EtcdAccess, NoTextContainsThePassword) {
    const auto store = must(open_store(good_url()));
    must(store->apply({}, patient()));
    std::vector<std::string> texts{store->info().url};
    for (const Finding& finding : store->examine(patient())) texts.push_back(finding.detail);
    server_->kill();
    texts.push_back(store->apply_one(by_alice(lock("x")), Deadline::in(host_clock(), 1s)).error().message);
    texts.push_back(store->inspect(lock("x"), Deadline::in(host_clock(), 1s)).error().message);
    for (const Finding& finding : store->examine(Deadline::in(host_clock(), 1s))) texts.push_back(finding.detail);
    for (const char* more : {"?tls=maybe", "?tls=verify", "?clock_margin=soon", "?unknown=1", "?tls_ca=/nowhere"}) {
        const auto opened = open_store(good_url() + more);
        ASSERT_FALSE(opened) << more;
        texts.push_back(opened.error().message);
    }
    EXPECT_THAT(texts, testing::Each(Not(HasSubstr(std::string(server_password)))));
}

TEST(EtcdAlarm, ADatabaseThatIsFullIsNamedAndNothingIsChanged) {
    const auto server = start_etcd_server();
    const EtcdByHand etcd(server->port());
    const auto store = must(open_store(fmt::format("etcd://127.0.0.1:{}/locks", server->port())));
    const Acquire alice = by_alice(lock("x"));
    must(store->apply_one(alice, patient()));
    etcd.call("/v3/maintenance/alarm", R"({"action":"ACTIVATE","alarm":"NOSPACE"})");
    const Reply refused = store->apply_one(release(alice), patient());
    ASSERT_THAT(refused, RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(refused.error().message, HasSubstr("NOSPACE"));
    EXPECT_EQ(must(store->inspect(lock("x"), patient())).state, LockState::held) << "reading goes on";
    const auto findings = store->examine(patient());
    const auto alarms = std::ranges::find(findings, "alarms", &Finding::name);
    ASSERT_NE(alarms, findings.end());
    EXPECT_FALSE(alarms->ok);
    etcd.call("/v3/maintenance/alarm", R"({"action":"DEACTIVATE","alarm":"NOSPACE"})");
    EXPECT_THAT(store->apply_one(release(alice), patient()), Granted());
}

}  // namespace
}  // namespace holdfast::tests
