// Goal: what a client is told, request by request, is what the store decided.
// Method: a real daemon on SQLite, and requests as any HTTP client sends them.
#include "server/daemon.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::server_test {
namespace {

using testing::HasSubstr;

class Api : public testing::Test {
protected:
    [[nodiscard]] cli_test::Document acquire(const std::string& name) const {
        const Answer answer =
            daemon.post("/v1/acquire", fmt::format(R"({{"name":"{}","ttl_ms":60000,"holder":"test"}})", name));
        EXPECT_EQ(answer.status, 200) << answer.body;
        return answer.json();
    }

    Daemon daemon{};
};

TEST_F(Api, ALockIsTakenRenewedCheckedAndGivenBack) {
    const auto grant = acquire("a");
    EXPECT_EQ(grant.text("/state"), "held");
    const std::string lease = grant.text("/lease");
    const std::string body = fmt::format(R"({{"name":"a","lease":"{}"}})", lease);

    const Answer renewed = daemon.post("/v1/renew", body);
    EXPECT_EQ(renewed.status, 200);
    EXPECT_EQ(renewed.json().number("/renew_seq"), 1);
    EXPECT_EQ(renewed.json().number("/ttl_ms"), 60'000) << "as long as before";
    EXPECT_EQ(daemon.get("/v1/check?name=a&token=" + grant.text("/token")).status, 204);
    EXPECT_EQ(daemon.get("/v1/lock?name=a").json().text("/holder"), "test");
    EXPECT_EQ(daemon.get("/v1/locks").json().size("/locks"), 1U);

    EXPECT_EQ(daemon.post("/v1/release", body).status, 200);
    EXPECT_EQ(daemon.post("/v1/renew", body).status, 404);
    EXPECT_EQ(daemon.get("/v1/check?name=a&token=" + grant.text("/token")).status, 412);
    EXPECT_EQ(daemon.get("/v1/check?deny=403&name=a&token=" + grant.text("/token")).status, 403);
    EXPECT_EQ(daemon.get("/v1/history?name=a").json().size("/events"), 3U);
}

TEST_F(Api, AConflictTellsWhoHoldsTheLock) {
    const auto grant = acquire("a");
    const Answer refused = daemon.post("/v1/acquire", R"({"name":"a"})");
    EXPECT_EQ(refused.status, 423);
    EXPECT_EQ(refused.code(), "E_LOCK_CONFLICT");
    EXPECT_EQ(refused.json().text("/error/holder/lock_id"), grant.text("/lock_id"));
    EXPECT_THAT(refused.body, Not(HasSubstr(grant.text("/lease"))));
}

TEST_F(Api, ABatchAnswersEachRequestWithTheStatusOfItsOwn) {
    const auto grant = acquire("a");
    const Answer answer = daemon.post(
        "/v1/batch", fmt::format(R"({{"requests":[{{"op":"acquire","name":"b"}},{{"op":"acquire","name":"a"}},)"
                                 R"({{"op":"check","name":"a","token":{}}}]}})",
                                 grant.text("/token")));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto replies = answer.json();
    EXPECT_EQ(replies.number("/replies/0/status"), 200);
    EXPECT_TRUE(replies.has("/replies/0/lease"));
    EXPECT_EQ(replies.number("/replies/1/status"), 423);
    EXPECT_EQ(replies.text("/replies/1/error/code"), "E_LOCK_CONFLICT");
    EXPECT_EQ(replies.number("/replies/2/status"), 200);
    EXPECT_TRUE(replies.yes("/replies/2/current"));
}

TEST_F(Api, AFieldThatARequestDoesNotHaveIsRefusedAndNothingIsTaken) {
    const Answer refused = daemon.post("/v1/acquire", R"({"name":"a","unles_held":["b"]})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("unles_held"));
    EXPECT_EQ(daemon.get("/v1/locks?all=1").json().size("/locks"), 0U);
}

TEST_F(Api, ARequestThatIsReadAfterItsTimeIsNotSentToTheStore) {
    const Answer late = daemon.client().call("POST", "/v1/acquire", R"({"name":"a"})", {{"Holdfast-Before", "1"}});
    EXPECT_EQ(late.status, 503);
    EXPECT_EQ(late.code(), "E_STORE_UNAVAILABLE");
    EXPECT_EQ(daemon.get("/v1/locks?all=1").json().size("/locks"), 0U);
    const std::string soon = std::to_string(std::stoll(late.headers.at("holdfast-time")) + 60'000);
    EXPECT_EQ(daemon.client().call("POST", "/v1/acquire", R"({"name":"a"})", {{"Holdfast-Before", soon}}).status, 200);
}

TEST_F(Api, UnlockBreaksTheLeaseThatWasSeenAndNoOther) {
    const auto grant = acquire("a");
    const std::string other = "11111111-1111-4111-8111-111111111111";
    EXPECT_EQ(daemon.post("/v1/unlock", fmt::format(R"({{"name":"a","lock_id":"{}"}})", other)).status, 423);
    EXPECT_EQ(daemon.post("/v1/unlock", fmt::format(R"({{"name":"a","lock_id":"{}"}})", grant.text("/lock_id"))).status,
              200);
    const auto events = daemon.get("/v1/history?name=a").json();
    EXPECT_EQ(events.text("/events/1/event"), "broken");
    EXPECT_EQ(events.text("/events/1/actor"), "127.0.0.1") << "nobody said who it was";
}

TEST_F(Api, TheStoreSaysWhatItPromises) {
    const auto store = daemon.get("/v1/store").json();
    EXPECT_TRUE(store.has("/store_id"));
    EXPECT_THAT(store.text("/grade"), testing::AnyOf("A", "B"));
    EXPECT_TRUE(store.has("/properties/pushes"));
    EXPECT_EQ(store.size("/checks"), 0U);
    EXPECT_GT(daemon.get("/v1/store?examine=1").json().size("/checks"), 0U);
    EXPECT_EQ(daemon.get("/readyz").status, 200);
    EXPECT_EQ(daemon.get("/healthz").status, 200);
}

TEST_F(Api, PagesOfOtherOriginsReachNothing) {
    using Headers = Client::Headers;
    const auto status = [&](const char* target, const Headers& headers) {
        return daemon.client().call("GET", target, "", headers).status;
    };
    EXPECT_EQ(status("/v1/locks", {{"Host", "evil.example"}}), 421);
    EXPECT_EQ(status("/v1/locks", {{"Origin", "http://evil.example"}}), 403);
    EXPECT_EQ(status("/v1/locks", {{"Origin", "null"}}), 403);
    EXPECT_EQ(status("/v1/locks", {{"Origin", "http://localhost:1"}}), 403) << "another port is another origin";
    EXPECT_EQ(status("/v1/locks", {{"Sec-Fetch-Site", "cross-site"}}), 403);
    EXPECT_EQ(status("/v1/locks", {{"Origin", "http://localhost"}, {"Sec-Fetch-Site", "same-origin"}}), 200);
}

TEST_F(Api, AnAddressThatIsNotThereAndAMethodThatItDoesNotHave) {
    EXPECT_EQ(daemon.get("/v1/nothing").status, 404);
    const Answer wrong = daemon.get("/v1/acquire");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.at("allow"), "POST");
}

TEST_F(Api, AStopEndsTheProcessWithStatusZeroAndNoSecretIsInTheLog) {
    Daemon logging({"--log-requests"});
    const Answer grant = logging.post("/v1/acquire", R"({"name":"secret-name"})");
    const std::string lease = grant.json().text("/lease");
    EXPECT_EQ(logging.get("/v1/lock?name=secret-name").status, 200);
    const auto ended = logging.stop();
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, testing::StartsWith("listening on http://127.0.0.1:"));
    EXPECT_THAT(ended.err, HasSubstr(R"("path":"/v1/acquire")"));
    EXPECT_THAT(ended.err, Not(HasSubstr(lease.substr(lease.find('.') + 1))));
    EXPECT_THAT(ended.err, Not(HasSubstr("secret-name")));
}

TEST(Listening, AnotherAddressThanTheLoopbackNeedsTlsAndTokens) {
    cli_test::Sandbox box;
    const auto before = box.files();
    for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
        const auto refused = box.run({"serve", "--listen", address, "--json"});
        EXPECT_EQ(refused.status, 78) << refused.err;
        EXPECT_EQ(refused.code(), "E_CONFIG");
    }
    EXPECT_EQ(box.files(), before) << "nothing was written";
}

}  // namespace
}  // namespace holdfast::server_test
