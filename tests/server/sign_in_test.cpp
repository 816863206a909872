// How callers of a real daemon prove who they are: cookies, a proxy's header, and the file of tokens.
#include "server/guarded.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

namespace holdfast::server_test {
namespace {

using cli_test::Document;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
    for (const char* site : {"cross-site", "same-site"})
        for (const char* target : {"/v1/locks", "/metrics"}) {
            Client::Headers of_a_page = cookie;
            of_a_page.emplace("Sec-Fetch-Site", site);
            EXPECT_EQ(guarded.call("", "GET", target, "", of_a_page).status, 403) << site << target;
        }

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
