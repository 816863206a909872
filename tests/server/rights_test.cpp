// Who may do what through a real daemon: what somebody tries who may not, and what is seen of others.
#include "server/guarded.hpp"
#include "server/stream.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::server_test {
namespace {

using cli_test::Document;
using testing::HasSubstr;
using testing::Not;

const std::string wrong_lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');

TEST(Rights, ABatchIsRefusedAsAWholeWhereOneOfItsRequestsIsNotAllowed) {
    Guarded guarded;
    const std::string team = guarded.token("alice", {"holder:team", "viewer:seen"});
    const std::string root = guarded.token("root", {"admin"});
    const std::string mine = R"({"op":"acquire","name":"team/a","holder":"x"})";
    const auto answer_to = [&](const std::string& items) {
        return guarded.post(team, "/v1/batch", R"({"requests":[)" + items + "]}");
    };
    for (const char* other :
         {R"({"op":"acquire","name":"teams","holder":"x"})", R"({"op":"acquire","name":"seen","holder":"x"})",
          R"({"op":"check","name":"other","token":1})", R"({"op":"prune","name":"team/a","through":1})",
          R"({"op":"unlock","name":"team/a","lock_id":"00000000-0000-4000-8000-000000000000"})",
          R"({"op":"break","name":"team/a","lock_id":"00000000-0000-4000-8000-000000000000"})",
          R"({"op":"acquire","name":"team/b","holder":"x","unless_held":["other"]})"}) {
        EXPECT_EQ(answer_to(mine + "," + other).status, 403) << other;
        EXPECT_EQ(answer_to(std::string(other) + "," + mine).status, 403) << other;
    }
    EXPECT_EQ(guarded.get(root, "/v1/history").json().size("/events"), 0U) << "nothing of it has reached the store";
    EXPECT_EQ(answer_to(mine + R"(,{"op":"check","name":"seen","token":1})").status, 200);
}

TEST(Rights, ANameHasOneSpelling) {
    Guarded guarded;
    const std::string token = guarded.token("alice", {"viewer:team"});
    EXPECT_EQ(guarded.get(token, "/v1/lock?name=team%2Fa").status, 200);
    EXPECT_EQ(guarded.get(token, "/v1/lock?name=%74eam/a").status, 200);
    for (const char* name : {"team%252Fa", "Team/a", "/team/a", "%20team/a", "teams", "te%C3%A0m/a", "t%D0%B5am/a",
                             "team%E2%88%95a", "other%2Fteam", "TEAM"})
        EXPECT_EQ(guarded.get(token, fmt::format("/v1/lock?name={}", name)).status, 403) << name;
    for (const char* name : {"team/../other", "team%2F..%2Fother", "team/./a", "%00", "team/a%0a", "%ff", "%2", ""})
        EXPECT_EQ(guarded.get(token, fmt::format("/v1/lock?name={}", name)).status, 400) << name;
    EXPECT_EQ(guarded.get(token, "/v1/lock?name=team/a&name=other").status, 400);
}

TEST(Rights, AnswersHaveOnlyLocksThatTheCallerMaySee) {
    Guarded guarded;
    const std::string all = guarded.token("root", {"admin"});
    const std::string team = guarded.token("alice", {"holder:team"});
    for (const char* name : {"other/secret", "team/a", "teams"})
        ASSERT_EQ(guarded.post(all, "/v1/acquire", fmt::format(R"({{"name":"{}","holder":"x"}})", name)).status, 200);
    EXPECT_EQ(guarded.get(all, "/v1/locks").json().size("/locks"), 3U);
    const Document locks = guarded.get(team, "/v1/locks").json();
    EXPECT_EQ(locks.size("/locks"), 1U);
    EXPECT_EQ(locks.text("/locks/0/name"), "team/a");
    EXPECT_EQ(guarded.get(team, "/v1/locks?prefix=other").json().size("/locks"), 0U);
    EXPECT_EQ(guarded.get(team, "/v1/history").json().size("/events"), 1U);
    const Answer refused =
        guarded.post(team, "/v1/acquire", R"({"name":"team/b","holder":"x","unless_held":["other/secret"]})");
    EXPECT_EQ(refused.status, 403) << "the conflict would tell who holds it";
    EXPECT_THAT(refused.body, Not(HasSubstr("secret")));
}

TEST(Rights, TheAuditLogHasWhoAndFromWhereWhateverTheCallerSays) {
    Guarded guarded;
    const std::string alice = guarded.token("alice", {"holder"});
    const std::string root = guarded.token("root", {"admin"});
    const Document grant =
        guarded.post(alice, "/v1/acquire", R"({"name":"a","holder":"ci-7","user":"mallory"})").json();
    EXPECT_EQ(grant.text("/user"), "alice");
    EXPECT_EQ(grant.text("/holder"), "ci-7");
    ASSERT_EQ(guarded
                  .post(root, "/v1/unlock",
                        fmt::format(R"({{"name":"a","lock_id":"{}","actor":"nobody","reason":"stuck"}})",
                                    grant.text("/lock_id")))
                  .status,
              200);
    const Document events = guarded.get(root, "/v1/history?name=a").json();
    EXPECT_EQ(events.text("/events/0/user"), "alice");
    EXPECT_EQ(events.text("/events/1/actor"), "root from 127.0.0.1: nobody");
}

TEST(Rights, EveryChangeIsAuditedWithTheAddressAndWhoSentItIfThatIsNotTheHolder) {
    Guarded guarded;
    const std::string alice = guarded.token("alice", {"holder"});
    const std::string bob = guarded.token("bob", {"holder"});
    const std::string root = guarded.token("root", {"viewer"});
    Stream stream(guarded.daemon.port(), "?since=end", "", {{"Authorization", "Bearer " + root}});
    stream.skip_to_ready();
    const auto lease = [](const Document& grant) {
        return fmt::format(R"({{"name":"a","lease":"{}")", grant.text("/lease"));
    };
    const Document grant = guarded.post(alice, "/v1/acquire", R"({"name":"a","holder":"ci-7"})").json();
    ASSERT_EQ(guarded.post(alice, "/v1/renew", lease(grant) + "}").status, 200);
    const Document moved = guarded.post(alice, "/v1/transfer", lease(grant) + R"(,"to":"ci-8"})").json();
    ASSERT_EQ(guarded.post(bob, "/v1/release", lease(moved) + "}").status, 200);
    const Document events = guarded.get(root, "/v1/history?name=a").json();
    ASSERT_EQ(events.size("/events"), 4U);
    for (int i = 0; i < 4; ++i) {
        const std::string details = fmt::format("/events/{}/details", i);
        EXPECT_EQ(events.text(details + "/address"), "127.0.0.1") << i;
        const auto told = stream.next_event();
        ASSERT_TRUE(told);
        EXPECT_EQ(told->json().text("/details/address"), "127.0.0.1") << i;
    }
    EXPECT_FALSE(events.has("/events/0/details/by"));
    EXPECT_FALSE(events.has("/events/1/details/by"));
    EXPECT_EQ(events.text("/events/3/details/by"), "bob") << "whoever has the key may give it back, and is told of";
    const auto shown = guarded.daemon.box.run({"history", "a", "--store", "sqlite:locks.db"});
    EXPECT_THAT(shown.out, HasSubstr("  by bob  address 127.0.0.1"));
}

TEST(Revoked, ATokenEndsTheStreamsOfItsOwnerAndNoOther) {
    Guarded guarded;
    const std::string alice = guarded.token("alice", {"viewer"});
    const std::string root = guarded.token("root", {"admin"});
    const auto port = guarded.daemon.port();
    Stream hers(port, "?since=end", "", {{"Authorization", "Bearer " + alice}});
    hers.skip_to_ready();
    Stream by_cookie(port, "?since=end", "", {{"Cookie", "holdfast_session=" + alice}});
    by_cookie.skip_to_ready();
    Stream other(port, "?since=end", "", {{"Authorization", "Bearer " + root}});
    other.skip_to_ready();
    guarded.revoke(alice);
    ASSERT_EQ(guarded.post(root, "/v1/acquire", R"({"name":"secret","holder":"x"})").status, 200);
    EXPECT_FALSE(hers.next_event()) << "it ends before anything more is sent";
    EXPECT_FALSE(by_cookie.next_event());
    const auto event = other.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->json().text("/name"), "secret");
}

TEST(Revoked, ATokenGetsNoLockThatItsOwnerWaitsFor) {
    Guarded guarded;
    const std::string alice = guarded.token("alice", {"holder"});
    const std::string root = guarded.token("root", {"admin"});
    const Document grant = guarded.post(root, "/v1/acquire", R"({"name":"a","holder":"x","ttl_ms":600000})").json();
    Client waiter = guarded.daemon.client();
    waiter.send_request("POST", "/v1/acquire", R"({"name":"a","holder":"y","wait_ms":600000})",
                        {{"Authorization", "Bearer " + alice}});
    ASSERT_TRUE(
        cli_test::eventually([&] { return guarded.get(root, "/v1/lock?name=a").json().number("/waiters") == 1; }));
    guarded.revoke(alice);
    ASSERT_EQ(
        guarded.post(root, "/v1/release", fmt::format(R"({{"name":"a","lease":"{}"}})", grant.text("/lease"))).status,
        200);
    EXPECT_EQ(waiter.read_answer().status, 403);
    EXPECT_EQ(guarded.get(root, "/v1/lock?name=a").json().text("/state"), "free");
}

TEST(Revoked, ATokenHearsNoMoreOfALockThatItsOwnerWatches) {
    Guarded guarded;
    const std::string root = guarded.token("root", {"admin"});
    const auto watched = [&](const std::function<void()>& harm, const std::string& token) {
        const std::int64_t seq = guarded.get(root, "/v1/lock?name=a").json().number("/seq");
        Client waiter = guarded.daemon.client();
        waiter.send_request("POST", "/v1/wait",
                            fmt::format(R"({{"watches":[{{"name":"a","seen_seq":{}}}],"timeout_ms":60000}})", seq),
                            {{"Authorization", "Bearer " + token}});
        harm();
        const Document grant = guarded.post(root, "/v1/acquire", R"({"name":"a","holder":"x"})").json();
        const std::string lease = fmt::format(R"({{"name":"a","lease":"{}"}})", grant.text("/lease"));
        EXPECT_EQ(guarded.post(root, "/v1/release", lease).status, 200);
        return waiter.read_answer();
    };
    const std::string alice = guarded.token("alice", {"viewer"});
    EXPECT_EQ(watched([] {}, alice).status, 200);
    const Answer refused = watched([&] { guarded.revoke(alice); }, alice);
    EXPECT_NE(refused.status, 200) << refused.body;
    EXPECT_EQ(refused.code(), "E_DENIED");
}

TEST(Rights, AStreamHasOnlyEventsThatItsReaderMaySee) {
    Guarded guarded;
    const std::string team = guarded.token("alice", {"viewer:team"});
    const std::string root = guarded.token("root", {"admin"});
    Stream stream(guarded.daemon.port(), "?since=end", "", {{"Authorization", "Bearer " + team}});
    stream.skip_to_ready();
    for (const char* name : {"teams", "other/team", "team/a"})
        ASSERT_EQ(guarded.post(root, "/v1/acquire", fmt::format(R"({{"name":"{}","holder":"x"}})", name)).status, 200);
    const auto event = stream.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->json().text("/name"), "team/a");

    // Whatever it asks for: from the beginning, with a prefix of others, by page.
    const auto from = [&](const std::string& query) {
        Stream again(guarded.daemon.port(), query, "", {{"Authorization", "Bearer " + team}});
        std::vector<std::string> names;
        for (auto each = again.next(); each && each->kind != "ready"; each = again.next())
            names.push_back(each->json().text("/name"));
        return names;
    };
    EXPECT_THAT(from(""), testing::ElementsAre("team/a"));
    EXPECT_THAT(from("?prefix=tea"), testing::ElementsAre("team/a"));
    for (const char* prefix : {"teams", "other", "o", "team/b"})
        EXPECT_THAT(from(fmt::format("?prefix={}", prefix)), testing::IsEmpty()) << prefix;
    EXPECT_EQ(guarded.get(team, "/v1/events").json().size("/events"), 1U);
    EXPECT_EQ(guarded.get(team, "/v1/events?prefix=other").json().size("/events"), 0U);
}

/// What a proxy or a framework might take for the address of an endpoint, and what it might take for another method.
TEST(Rights, AnEndpointHasOneAddressAndOneMethod) {
    Guarded guarded;
    const std::string root = guarded.token("root", {"admin"});
    const std::string body = R"({"name":"a","holder":"x"})";
    for (const char* path : {"/v1/acquire/",
                             "/v1//acquire",
                             "//v1/acquire",
                             "/v1/%61cquire",
                             "/v1%2Facquire",
                             "/v1/acquire%2F",
                             "/v1/acquire;x=1",
                             "/v1/lock/..;/acquire",
                             "/v1/lock/../acquire",
                             "/v1/./acquire",
                             "/V1/acquire",
                             "/v1/ACQUIRE",
                             "/v1/acquire%00",
                             "/v1/acquire%20",
                             "/v1\\acquire",
                             "/v1/acquire.json",
                             "/acquire",
                             "http://localhost/v1/acquire",
                             "*",
                             "",
                             "v1/acquire"}) {
        const int status = guarded.post(root, path, body).status;
        EXPECT_TRUE(status == 400 || status == 404 || status == 405) << path << ": " << status;
    }
    for (const char* path : {"/v1/locks/", "/v1/locks;x=1", "/v1/locks.json", "/v1/locks%20", "/healthz/../v1/locks",
                             "//v1/locks", "/v1/lock%73", "/metrics/", "/readyz/..;/v1/locks"})
        EXPECT_EQ(guarded.get(root, path).status, 404) << path;
    const Client::Headers other_method{{"Authorization", "Bearer " + root},
                                       {"X-HTTP-Method-Override", "POST"},
                                       {"X-HTTP-Method", "POST"},
                                       {"X-Method-Override", "POST"}};
    for (const char* method : {"GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "post", "ACQUIRE"}) {
        const Answer answer = guarded.call("", method, "/v1/acquire", body, other_method);
        EXPECT_TRUE(answer.status == 405 || answer.status == 404) << method << ": " << answer.status;
        EXPECT_FALSE(answer.headers.contains("access-control-allow-origin"));
    }
    const Client::Headers rewritten{{"X-Original-URL", "/v1/locks"},
                                    {"X-Rewrite-URL", "/v1/locks"},
                                    {"X-Forwarded-For", "127.0.0.1"},
                                    {"X-Forwarded-Host", "localhost"},
                                    {"X-User", "root"},
                                    {"X-Remote-User", "root"}};
    EXPECT_EQ(guarded.call("", "GET", "/healthz", "", rewritten).body, R"({"alive":true})");
    EXPECT_EQ(guarded.call("", "GET", "/v1/locks", "", rewritten).status, 401);
    EXPECT_EQ(guarded.get(root, "/v1/history").json().size("/events"), 0U);
}

TEST(Rights, AHeadHasTheRightsOfItsGetAndNoBody) {
    Guarded guarded;
    const std::string team = guarded.token("alice", {"viewer:team"});
    for (const char* target : {"/v1/locks", "/v1/events", "/v1/events?since=end", "/v1/lock?name=team/a"}) {
        Client client = guarded.daemon.client();
        client.send_request("HEAD", target, "", {{"Authorization", "Bearer " + team}, {"Accept", "text/event-stream"}});
        EXPECT_EQ(client.read_head().status, 200) << target;
        // What follows is the next answer, and not a body or a stream.
        client.send_request("HEAD", "/v1/lock?name=other", "", {{"Authorization", "Bearer " + team}});
        EXPECT_EQ(client.read_head().status, 403) << target;
    }
    for (const auto& [target, status] : {std::pair{"/v1/locks", 401}, std::pair{"/v1/acquire", 405}}) {
        Client nobody = guarded.daemon.client();
        nobody.send_request("HEAD", target, "", {{"X-HTTP-Method-Override", "POST"}});
        EXPECT_EQ(nobody.read_head().status, status) << target;
    }
}

class Override : public testing::Test {
protected:
    Guarded guarded;
    const std::string alice = guarded.token("alice", {"holder"});
    const std::string bob = guarded.token("bob", {"holder"});
    const std::string root = guarded.token("root", {"admin"});
    const Document grant = guarded.post(alice, "/v1/acquire", R"({"name":"a","holder":"web"})").json();

    Document ask(const std::string& token) {
        const Answer asked = guarded.post(token, "/v1/override/request", R"({"name":"a","holder":"me","reason":"r"})");
        EXPECT_EQ(asked.status, 200) << asked.body;
        return guarded.get(token, "/v1/lock?name=a").json();
    }
    Answer answer(const std::string& token, const char* verdict, const Document& asked, const std::string& more = "") {
        return guarded.post(token, fmt::format("/v1/override/{}", verdict),
                            fmt::format(R"({{"name":"a","lock_id":"{}"{}}})", asked.text("/override/lock_id"), more));
    }
    Document last_event() { return *Document::parse(guarded.get(root, "/v1/history?name=a&limit=1").body); }
};

TEST_F(Override, AnAdminApprovesAndTheLockMovesWithANewToken) {
    const Document asked = ask(bob);
    EXPECT_EQ(asked.text("/override/user"), "bob");
    EXPECT_EQ(answer(bob, "approve", asked, R"(,"reason":"please")").status, 403);
    EXPECT_EQ(answer(alice, "approve", asked).status, 403) << "to answer as the holder she shows her lease";
    const Answer approved = answer(root, "approve", asked);
    ASSERT_EQ(approved.status, 200) << approved.body;
    EXPECT_EQ(approved.json().text("/user"), "bob");
    EXPECT_GT(approved.json().number("/token"), grant.number("/token"));
    EXPECT_FALSE(last_event().has("/events/0/details/break_glass"));
    EXPECT_EQ(last_event().text("/events/0/actor"), "root from 127.0.0.1");
}

TEST_F(Override, TheHolderApprovesWithItsLease) {
    const Document asked = ask(bob);
    EXPECT_EQ(answer(alice, "approve", asked, fmt::format(R"(,"lease":"{}")", wrong_lease)).status, 403);
    EXPECT_EQ(answer(alice, "approve", asked, fmt::format(R"(,"lease":"{}")", grant.text("/lease"))).status, 200);
}

TEST_F(Override, AnAdminBreaksGlassOnlyWithAReasonAndItIsMarked) {
    const Document asked = ask(root);
    EXPECT_EQ(answer(root, "approve", asked).status, 400);
    EXPECT_EQ(answer(root, "approve", asked, R"(,"reason":"production is down","break_glass":false)").status, 200);
    EXPECT_EQ(last_event().text("/events/0/event"), "override_approved");
    EXPECT_EQ(last_event().text("/events/0/details/break_glass"), "yes");
    EXPECT_EQ(last_event().text("/events/0/reason"), "production is down");
}

TEST_F(Override, WhoAskedMayWithdrawAndNobodyElseBelowAnAdmin) {
    const Document asked = ask(bob);
    EXPECT_EQ(answer(alice, "deny", asked).status, 403);
    EXPECT_EQ(answer(bob, "deny", asked).status, 200);
    EXPECT_EQ(answer(root, "deny", asked).status, 404) << "nobody asks any more";
}

}  // namespace
}  // namespace holdfast::server_test
