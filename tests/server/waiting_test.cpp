// Goal: whoever waits at the daemon gets the lock in turn, and whoever leaves is out of the way at once.
// Method: several connections of a real daemon. Nothing is timed: an order or an end shows what happened.
#include "server/daemon.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::server_test {
namespace {

constexpr const char* long_wait = R"({"name":"a","holder":"h","ttl_ms":60000,"wait_ms":60000})";

class Waiting : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] std::string take() const {
        const Answer grant = daemon.post("/v1/acquire", R"({"name":"a","holder":"first","ttl_ms":60000})");
        EXPECT_EQ(grant.status, 200) << grant.body;
        return grant.json().text("/lease");
    }
    [[nodiscard]] Answer release(const std::string& lease) const {
        return daemon.post("/v1/release", fmt::format(R"({{"name":"a","lease":"{}"}})", lease));
    }
    void expect_waiters(std::int64_t count) const {
        EXPECT_TRUE(cli_test::eventually([&] {
            return daemon.get("/v1/lock?name=a").json().number("/waiters") == count;
        })) << "not "
            << count;
    }

    Daemon daemon{{}, GetParam()};
};

TEST_P(Waiting, AReleaseHandsTheLockToTheFirstInLineWhichHasItForItsWholeTime) {
    const std::string lease = take();
    std::vector<Client> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(daemon.client());
        clients.back().send_request("POST", "/v1/acquire", long_wait);
        expect_waiters(i + 1);
    }
    std::string held = lease;
    for (Client& client : clients) {
        ASSERT_EQ(release(held).status, 200);
        const Answer grant = client.read_answer();
        ASSERT_EQ(grant.status, 200) << grant.body;
        EXPECT_EQ(grant.json().number("/ttl_ms"), 60'000) << "not only as long as a place in the queue";
        held = grant.json().text("/lease");
    }
    EXPECT_EQ(release(held).status, 200);
}

TEST_P(Waiting, AClientThatHangsUpLosesItsPlaceAtOnce) {
    const std::string lease = take();
    Client gone = daemon.client();
    gone.send_request("POST", "/v1/acquire", long_wait);
    expect_waiters(1);
    Client stays = daemon.client();
    stays.send_request("POST", "/v1/acquire", long_wait);
    expect_waiters(2);
    gone.hang_up();
    expect_waiters(1);
    ASSERT_EQ(release(lease).status, 200);
    EXPECT_EQ(stays.read_answer().status, 200);
}

TEST_P(Waiting, AWaitThatEndsIsRefusedWithTheHolderAndLeavesTheQueue) {
    const std::string lease = take();
    const Answer refused = daemon.post("/v1/acquire", R"({"name":"a","wait_ms":300})");
    EXPECT_EQ(refused.status, 423);
    EXPECT_EQ(refused.json().text("/error/holder/holder"), "first");
    expect_waiters(0);
}

TEST_P(Waiting, AStopSendsEverybodyAwayAndGivesTheirPlacesUp) {
    const std::string lease = take();
    Client client = daemon.client();
    client.send_request("POST", "/v1/acquire", long_wait);
    expect_waiters(1);
    EXPECT_EQ(daemon.stop().status, 0);
    EXPECT_EQ(client.read_answer().status, 503);
    const auto after = daemon.box.run({"status", "a", "--json", "--store", GetParam()}).json();
    EXPECT_EQ(after.number("/waiters"), 0);
    EXPECT_EQ(after.text("/state"), "held");
}

TEST_P(Waiting, APollOfManyWatchesIsAnsweredWhenOneFires) {
    const std::string lease = take();
    const auto lock = daemon.get("/v1/lock?name=a").json();
    const std::string body =
        fmt::format(R"({{"watches":[{{"name":"b","seen_seq":0}},{{"name":"a","lease_id":"{}"}}],"timeout_ms":60000}})",
                    lock.text("/lock_id"));
    Client client = daemon.client();
    client.send_request("POST", "/v1/wait", body);
    EXPECT_TRUE(client.is_silent_for(std::chrono::milliseconds{50}));
    ASSERT_EQ(daemon.post("/v1/unlock", fmt::format(R"({{"name":"a","lock_id":"{}"}})", lock.text("/lock_id"))).status,
              200);
    const Answer fired = client.read_answer();
    EXPECT_EQ(fired.status, 200);
    EXPECT_EQ(fired.json().size("/fired"), 1U) << fired.body;
    EXPECT_EQ(fired.json().number("/fired/0/index"), 1);
    EXPECT_FALSE(fired.json().has("/fired/0/handed_on"));
}

TEST_P(Waiting, APollEndsWithNothingAfterItsTime) {
    const Answer answer = daemon.post("/v1/wait", R"({"watches":[{"name":"b"}],"timeout_ms":50})");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, R"({"fired":[]})");
}

INSTANTIATE_TEST_SUITE_P(Stores, Waiting, testing::ValuesIn(cli_test::stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::server_test
