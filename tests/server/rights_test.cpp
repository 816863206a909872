// Who may do what through a real daemon: every endpoint with every role and area, and what somebody tries who may not.
#include "json/parse.hpp"
#include "server/guarded.hpp"
#include "server/stream.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sys/stat.h>

namespace holdfast::server_test {
namespace {

using cli_test::Document;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// One call, with `{}` for the name of a lock, and who may make it.
struct Cell {
    std::string method;
    std::string target;
    std::string body;
    int role;                ///< 0: viewer, 1: holder, 2: admin.
    bool for_a_lock = true;  ///< Otherwise a grant for any area will do.
    bool for_all = false;    ///< A grant for everything is needed.
};

const std::string some_lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
const std::string some_id = "00000000-0000-4000-8000-000000000000";

std::vector<Cell> cells() {
    const auto body = [](const std::string& rest) { return R"({"name":"{}")" + rest + "}"; };
    const std::string lease = R"(,"lease":")" + some_lease + '"';
    const std::string lock_id = R"(,"lock_id":")" + some_id + '"';
    return {
        {"POST", "/v1/acquire", body(""), 1},
        {"POST", "/v1/renew", body(lease), 1},
        {"POST", "/v1/release", body(lease), 1},
        {"POST", "/v1/cancel", body(lease), 1},
        {"POST", "/v1/transfer", body(lease + R"(,"to":"x")"), 1},
        {"POST", "/v1/check", body(R"(,"token":1)"), 0},
        {"POST", "/v1/expire", body(lock_id), 1},
        {"POST", "/v1/fenced", body(lock_id + R"(,"token":1,"holder":"x")"), 1},
        {"POST", "/v1/unlock", body(lock_id), 2},
        {"POST", "/v1/override/request", body(""), 1},
        {"POST", "/v1/override/approve", body(lock_id), 2},
        {"POST", "/v1/override/deny", body(lock_id), 2},
        {"POST", "/v1/override/approve", body(lock_id + lease), 1},
        {"POST", "/v1/override/deny", body(lock_id + lease), 1},
        {"POST", "/v1/batch", R"({"requests":[{"op":"prune","name":"{}","through":1}]})", 2},
        {"POST", "/v1/batch", R"({"requests":[{"op":"repair","name":"{}"}]})", 2},
        {"POST", "/v1/batch", R"({"requests":[{"op":"check","name":"{}","token":1}]})", 0},
        {"POST", "/v1/wait", R"({"watches":[{"name":"{}"}],"timeout_ms":0})", 0},
        {"GET", "/v1/check?name={}&token=1", "", 0},
        {"GET", "/v1/lock?name={}", "", 0},
        {"GET", "/v1/history?name={}", "", 0},
        {"GET", "/v1/locks", "", 0, false},
        {"GET", "/v1/history", "", 0, false},
        {"GET", "/v1/overrides", "", 0, false},
        {"GET", "/v1/events?since=end", "", 0, false},
        {"GET", "/v1/store", "", 0, false},
        {"GET", "/v1/session", "", 0, false},
        {"GET", "/metrics", "", 0, false, true},
        {"GET", "/v1/store?examine=1", "", 2, false, true},
    };
}

std::string filled(std::string text, const std::string& name) {
    if (const auto at = text.find("{}"); at != std::string::npos) text.replace(at, 2, name);
    return text;
}

TEST(Rights, EveryEndpointWithEveryRoleAndArea) {
    Guarded guarded;
    const std::vector<std::string> roles{"viewer", "holder", "admin"};
    for (int role = 0; role < 3; ++role) {
        const std::string team = guarded.token("alice", {roles[static_cast<std::size_t>(role)] + ":team"});
        const std::string all = guarded.token("alice", {roles[static_cast<std::size_t>(role)]});
        for (const Cell& cell : cells()) {
            const std::string what = fmt::format("{} {} {} as {}", cell.method, cell.target, cell.body, role);
            const auto denied = [&](const std::string& token, const char* name) {
                const Answer answer =
                    guarded.call(token, cell.method, filled(cell.target, name), filled(cell.body, name));
                EXPECT_THAT(answer.status, testing::AllOf(testing::Ne(0), testing::Ne(401), testing::Ne(500))) << what;
                // The protocol refuses with the same code: a question that was asked before, a lease that is wrong.
                return answer.status == 403 && answer.body.find("needs the role") != std::string::npos;
            };
            EXPECT_EQ(denied(team, "team/a"), role < cell.role || cell.for_all) << what;
            EXPECT_EQ(denied(all, "team/a"), role < cell.role) << what;
            if (cell.for_a_lock) {
                EXPECT_TRUE(denied(team, "teams")) << what;
                EXPECT_TRUE(denied(team, "other")) << what;
            }
        }
    }
}

TEST(Rights, NoEndpointIsLeftOut) {
    const Daemon daemon;
    const auto document = json::parse(daemon.get("/openapi.json").body);
    ASSERT_TRUE(document);
    const auto& all = *document->object();
    const auto paths = std::ranges::find(all, "paths", &json::Member::key);
    std::size_t guarded = 0;
    for (const auto& [path, operations] : *paths->node.object())
        for (const auto& [method, operation] : *operations.object()) {
            // An operation for everybody says so; the others need what the document demands of all.
            const auto& fields = *operation.object();
            if (std::ranges::find(fields, "security", &json::Member::key) != fields.end()) continue;
            ++guarded;
            const bool is_post = method == "post";
            EXPECT_TRUE(std::ranges::any_of(cells(),
                                            [&](const Cell& cell) {
                                                return (cell.method == "POST") == is_post &&
                                                       cell.target.substr(0, cell.target.find('?')) == path;
                                            }))
                << method << ' ' << path << " has no row in the table of this file";
        }
    EXPECT_GT(guarded, 20U);
}

TEST(Rights, WithoutAProofNothingIsAnsweredButWhatIsForEverybody) {
    Guarded guarded;
    for (const Cell& cell : cells())
        for (const char* token : {"", "x", "hft_000000000000_0"}) {
            const Answer answer = guarded.call(token, cell.method, filled(cell.target, "a"), filled(cell.body, "a"));
            EXPECT_EQ(answer.status, 401) << cell.target;
            EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer");
            EXPECT_EQ(answer.code(), "E_DENIED");
        }
    for (const char* open : {"/healthz", "/readyz", "/openapi.json", "/"})
        EXPECT_EQ(guarded.get("", open).status, 200) << open;
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
    EXPECT_EQ(answer(alice, "approve", asked, fmt::format(R"(,"lease":"{}")", some_lease)).status, 403);
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

std::string cookie_of(const Answer& answer) {
    const std::string set = answer.headers.at("set-cookie");
    return set.substr(0, set.find(';'));
}

TEST(Session, ACookieIsAsGoodAsItsTokenAndEndsWithIt) {
    Guarded guarded;
    const std::string token = guarded.token("alice", {"holder:team", "viewer"});
    const Answer signed_in = guarded.post("", "/v1/session", fmt::format(R"({{"token":"{}"}})", token));
    ASSERT_EQ(signed_in.status, 200) << signed_in.body;
    EXPECT_THAT(signed_in.headers.at("set-cookie"), HasSubstr("; HttpOnly; SameSite=Strict"));
    EXPECT_THAT(signed_in.body, Not(HasSubstr(token)));
    const Client::Headers cookie{{"Cookie", cookie_of(signed_in)}};
    const Document session = guarded.call("", "GET", "/v1/session", "", cookie).json();
    EXPECT_EQ(session.text("/user"), "alice");
    EXPECT_EQ(session.text("/role"), "holder");
    EXPECT_EQ(session.text("/auth"), "cookie");
    EXPECT_EQ(session.text("/grants/0"), "holder:team");
    EXPECT_EQ(session.text("/prefixes/1"), "");

    const std::string acquire = R"({"name":"team/a","holder":"x"})";
    EXPECT_EQ(guarded.call("", "POST", "/v1/acquire", acquire, cookie).status, 403) << "the header is missing";
    Client::Headers with_header = cookie;
    with_header.emplace("Holdfast-Csrf", "1");
    EXPECT_EQ(guarded.call("", "POST", "/v1/acquire", acquire, with_header).status, 200);
    Client::Headers elsewhere = with_header;
    elsewhere.emplace("Origin", "http://evil.example");
    EXPECT_EQ(guarded.call("", "POST", "/v1/acquire", acquire, elsewhere).status, 403);
    EXPECT_EQ(guarded.call("", "GET", "/v1/locks", "", elsewhere).status, 403);

    guarded.revoke(token);
    EXPECT_EQ(guarded.call("", "GET", "/v1/session", "", cookie).status, 401);
}

TEST(Session, IsRefusedToWhoeverHasNoToken) {
    Guarded guarded;
    EXPECT_EQ(guarded.post("", "/v1/session", R"({"token":"hft_x"})").status, 401);
    EXPECT_FALSE(guarded.post("", "/v1/session", R"({"token":"hft_x"})").headers.contains("set-cookie"));
    for (const char* body : {"", "{}", "[]", R"({"token":1})", R"({"token":"a","x":1})"})
        EXPECT_EQ(guarded.post("", "/v1/session", body).status, 400) << body;
    const std::string token = guarded.token("alice", {"viewer"});
    const Answer elsewhere = guarded.call("", "POST", "/v1/session", fmt::format(R"({{"token":"{}"}})", token),
                                          {{"Origin", "http://evil.example"}});
    EXPECT_EQ(elsewhere.status, 403) << "a page could sign its visitor in as somebody else";
    EXPECT_FALSE(elsewhere.headers.contains("set-cookie"));
}

TEST(Session, SigningOutRemovesTheCookie) {
    Guarded guarded;
    const Answer out = guarded.call("", "DELETE", "/v1/session");
    EXPECT_EQ(out.status, 200);
    EXPECT_THAT(out.headers.at("set-cookie"), StartsWith("holdfast_session=; Path=/; Max-Age=0"));
}

TEST(Session, WithoutATokenFileNobodySignsInAndEverybodyIsIn) {
    const Daemon daemon;
    EXPECT_EQ(daemon.get("/v1/session").json().text("/auth"), "open");
    EXPECT_EQ(daemon.get("/v1/session").json().text("/role"), "admin");
    EXPECT_EQ(daemon.post("/v1/session", R"({"token":"x"})").status, 400);
}

TEST(Proxy, ItsHeaderIsBelievedFromItsAddressAlone) {
    Guarded trusting({"--trust-header", "X-User", "--trust-from", "127.0.0.0/8"});
    trusting.token("carol", {"holder"}, true);
    const Client::Headers carol{{"X-User", "carol"}};
    const Document session = trusting.call("", "GET", "/v1/session", "", carol).json();
    EXPECT_EQ(session.text("/user"), "carol");
    EXPECT_EQ(session.text("/auth"), "proxy");
    EXPECT_EQ(trusting.call("", "POST", "/v1/acquire", R"({"name":"a","holder":"x"})", carol).status, 403)
        << "a browser behind the proxy could be made to send this";
    EXPECT_EQ(trusting
                  .call("", "POST", "/v1/acquire", R"({"name":"a","holder":"x"})",
                        {{"X-User", "carol"}, {"Holdfast-Csrf", "1"}})
                  .status,
              200);
    EXPECT_EQ(trusting.call("", "GET", "/v1/session", "", {{"X-User", "dave"}}).status, 401);

    Guarded careful({"--trust-header", "X-User", "--trust-from", "10.0.0.0/8"});
    careful.token("carol", {"holder"}, true);
    EXPECT_EQ(careful.call("", "GET", "/v1/session", "", carol).status, 401);
    Guarded plain;
    plain.token("carol", {"holder"}, true);
    EXPECT_EQ(plain.call("", "GET", "/v1/session", "", carol).status, 401);
}

TEST(TokenFileOfADaemon, ThatBecomesDamagedLetsNobodyInUntilItIsRepaired) {
    Guarded guarded;
    const std::string token = guarded.token("alice", {"viewer"});
    ASSERT_EQ(guarded.get(token, "/v1/locks").status, 200);
    ASSERT_EQ(chmod(guarded.path.c_str(), 0666), 0);
    EXPECT_EQ(guarded.get(token, "/v1/locks").status, 401);
    EXPECT_EQ(guarded.get("", "/readyz").status, 503);
    EXPECT_EQ(guarded.get("", "/healthz").status, 200);
    const auto logs = [&](std::string_view event) {
        return cli_test::eventually([&] { return guarded.daemon.log().contains(event); });
    };
    EXPECT_TRUE(logs(R"("event":"token_file_failed")")) << guarded.daemon.log();
    ASSERT_EQ(chmod(guarded.path.c_str(), 0600), 0);
    EXPECT_EQ(guarded.get(token, "/v1/locks").status, 200);
    EXPECT_EQ(guarded.get("", "/readyz").status, 200);
    EXPECT_TRUE(logs(R"("event":"token_file_read")")) << guarded.daemon.log();
}

TEST(TokenFileOfADaemon, IsNeededAndMustBeSoundAtTheStart) {
    cli_test::Sandbox box;
    const auto refused = [&](const cli_test::Args& more) {
        cli_test::Args args{"serve", "--store", "sqlite:locks.db", "--listen", "127.0.0.1:0", "--json"};
        args.insert(args.end(), more.begin(), more.end());
        return box.run(args);
    };
    EXPECT_EQ(refused({"--token-file", "missing"}).code(), "E_CONFIG");
    box.write(box.work / "damaged", "{");
    EXPECT_EQ(refused({"--token-file", "damaged"}).code(), "E_CONFIG");
    EXPECT_EQ(refused({"--trust-header", "X-User"}).code(), "E_USAGE");
    EXPECT_EQ(refused({"--trust-from", "10.0.0.0/8"}).code(), "E_USAGE");
}

TEST(Figures, AreForWhoeverMaySeeAllLocks) {
    Guarded guarded;
    const std::string all = guarded.token("prometheus", {"viewer"});
    const std::string team = guarded.token("alice", {"admin:team"});
    ASSERT_EQ(guarded.post(team, "/v1/acquire", R"({"name":"team/a","holder":"x"})").status, 200);
    EXPECT_EQ(guarded.get(team, "/metrics").status, 403);
    const Answer answer = guarded.get(all, "/metrics");
    EXPECT_EQ(answer.status, 200);
    EXPECT_THAT(answer.headers.at("content-type"), StartsWith("text/plain; version=0.0.4"));
    EXPECT_THAT(answer.body, HasSubstr("holdfast_acquires_total{outcome=\"granted\"} 1\n"));
    EXPECT_THAT(answer.body, HasSubstr("holdfast_build_info{"));
}

}  // namespace
}  // namespace holdfast::server_test
