// Who sends a request: everything that can be shown, and everything that is shown to deceive.
#include "access/authenticator.hpp"

#include "support/temp_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::access {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string base64(std::string_view text) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    unsigned bits = 0;
    unsigned count = 0;
    for (const char c : text) {
        bits = (bits << 8U) | static_cast<unsigned char>(c);
        for (count += 8; count >= 6; count -= 6) out += digits[(bits >> (count - 6)) & 63U];
    }
    if (count > 0) out += digits[(bits << (6 - count)) & 63U];
    while (out.size() % 4 != 0) out += '=';
    return out;
}

class TheAuthenticator : public testing::Test {
protected:
    tests::TempFolder folder;
    const std::string path = (folder.path() / "tokens").string();
    const std::string alice = token_of("alice", false);
    const std::string bob = token_of("bob", false);
    const std::string proxied = token_of("carol", true);

    std::string token_of(const char* user, bool by_proxy) {
        const auto created = create_token(path, {.user = user, .grants = {{Role::holder, ""}}, .by_proxy = by_proxy},
                                          host_clock(), Deadline::never());
        EXPECT_TRUE(created);
        return created ? created->token : "";
    }
    std::unique_ptr<Authenticator> make(Transport transport = Transport::plain) const {
        auto made = Authenticator::create({.token_file = path,
                                           .trust_header = "X-User",
                                           .trust_from = {*Network::parse("10.0.0.0/8")},
                                           .transport = transport},
                                          host_clock());
        EXPECT_TRUE(made);
        return std::move(*made);
    }
    const std::unique_ptr<Authenticator> door = make();

    std::string user(const Shown& shown) const {
        const auto who = door->identify(shown);
        if (who) {
            EXPECT_EQ(who->address, shown.address);
            return who->user;
        }
        EXPECT_EQ(who.error().code, Errc::denied);
        return "nobody";
    }
};

TEST_F(TheAuthenticator, KnowsATokenInAHeader) {
    EXPECT_EQ(user({.authorization = {"Bearer " + alice}}), "alice");
    EXPECT_EQ(user({.authorization = {"bearer  " + bob + " "}}), "bob");
    EXPECT_EQ(user({.authorization = {"Basic " + base64("anybody:" + alice)}}), "alice");
    EXPECT_EQ(user({.authorization = {"Basic " + base64(":" + bob)}}), "bob");
}

TEST_F(TheAuthenticator, LetsNobodyInWithoutAProof) {
    EXPECT_EQ(user({}), "nobody");
    EXPECT_EQ(user({.address = "127.0.0.1"}), "nobody");
    for (const std::string& text :
         {std::string(), std::string("Bearer"), std::string("Bearer "), alice, "Bearer" + alice, "Token " + alice,
          "Basic " + alice, "Basic " + base64(alice), "Basic " + base64(alice + ":"), "Bearer " + alice + "," + bob,
          "Bearer " + alice + " x", std::string("Basic ===="), std::string("Basic \xff"), "Digest " + alice})
        EXPECT_EQ(user({.authorization = {text}}), "nobody") << text;
}

TEST_F(TheAuthenticator, RefusesAWrongTokenAlthoughSomethingElseWouldDo) {
    const std::string cookie = "holdfast_session=" + bob;
    EXPECT_EQ(user({.cookie = {cookie}}), "bob");
    EXPECT_EQ(user({.authorization = {"Bearer x"}, .cookie = {cookie}}), "nobody");
    EXPECT_EQ(user({.address = "10.0.0.1", .authorization = {"Bearer x"}, .trusted = {"carol"}}), "nobody");
    EXPECT_EQ(user({.address = "10.0.0.1", .cookie = {"holdfast_session=x"}, .trusted = {"carol"}}), "nobody");
    EXPECT_EQ(user({.authorization = {"Bearer " + alice, "Bearer " + alice}}), "nobody");
}

TEST_F(TheAuthenticator, KnowsTheCookieThatItHasSet) {
    const std::string set = door->sign_in_cookie(alice);
    EXPECT_THAT(set, StartsWith("holdfast_session=" + alice + "; "));
    EXPECT_THAT(set, HasSubstr("; HttpOnly"));
    EXPECT_THAT(set, HasSubstr("; SameSite=Strict"));
    EXPECT_THAT(set, Not(HasSubstr("Secure"))) << "a browser would not send it on loopback without TLS";
    EXPECT_EQ(user({.cookie = {set.substr(0, set.find(';'))}}), "alice");
    EXPECT_EQ(user({.cookie = {"theme=dark; holdfast_session=" + alice + "; x=y"}}), "alice");
    EXPECT_EQ(door->identify({.cookie = {"holdfast_session=" + alice}})->auth, Auth::cookie);
    EXPECT_THAT(door->sign_out_cookie(), StartsWith("holdfast_session=; Path=/; Max-Age=0"));
}

TEST_F(TheAuthenticator, RefusesACookieThatAnotherSiteMayHaveAdded) {
    EXPECT_EQ(user({.cookie = {"holdfast_session=" + alice + "; holdfast_session=" + bob}}), "nobody");
    EXPECT_EQ(user({.cookie = {"holdfast_session=" + alice, "holdfast_session=" + bob}}), "nobody");
    EXPECT_EQ(user({.cookie = {"holdfast_session=" + alice + "; holdfast_session=" + alice}}), "alice");
    for (const char* name : {"Holdfast_Session", "xholdfast_session", "holdfast_session2", "__Host-holdfast"})
        EXPECT_EQ(user({.cookie = {name + ("=" + alice)}}), "nobody") << name;
    for (const char* text : {"", ";", ";;;", "=", "holdfast_session", "holdfast_session=", "; ;holdfast_session="})
        EXPECT_EQ(user({.cookie = {text}}), "nobody") << text;
}

TEST_F(TheAuthenticator, OverTlsTakesTheCookieThatOnlyThisHostCanSet) {
    const auto secure = make(Transport::tls);
    EXPECT_THAT(secure->sign_in_cookie(alice), StartsWith("__Host-holdfast=" + alice));
    EXPECT_THAT(secure->sign_in_cookie(alice), HasSubstr("; Secure"));
    EXPECT_TRUE(secure->identify({.cookie = {"__Host-holdfast=" + alice}}));
    EXPECT_FALSE(secure->identify({.cookie = {"holdfast_session=" + alice}}));
}

TEST_F(TheAuthenticator, BelievesTheHeaderOfATrustedProxyAndOfNobodyElse) {
    EXPECT_EQ(user({.address = "10.1.2.3", .trusted = {"carol"}}), "carol");
    EXPECT_EQ(user({.address = "::ffff:10.1.2.3", .trusted = {"carol"}}), "carol");
    EXPECT_EQ(door->identify({.address = "10.1.2.3", .trusted = {"carol"}})->auth, Auth::proxy);
    for (const char* address : {"11.1.2.3", "127.0.0.1", "", "::1", "10.1.2.3, 10.1.2.3"})
        EXPECT_EQ(user({.address = address, .trusted = {"carol"}}), "nobody") << address;
    for (const char* name : {"alice", "dave", "", "*", "carol, carol", "carol\xff", " carol"})
        EXPECT_EQ(user({.address = "10.1.2.3", .trusted = {name}}), "nobody") << name;
    EXPECT_EQ(user({.address = "10.1.2.3", .trusted = {"carol", "carol"}}), "nobody")
        << "one of them may be the client's";
    EXPECT_EQ(user({.address = "10.1.2.3"}), "nobody");
}

TEST_F(TheAuthenticator, AsksForAHeaderWhereABrowserSendsTheProofByItself) {
    EXPECT_FALSE(needs_csrf_header(*door->identify({.authorization = {"Bearer " + alice}})));
    EXPECT_TRUE(needs_csrf_header(*door->identify({.cookie = {"holdfast_session=" + alice}})));
    EXPECT_TRUE(needs_csrf_header(*door->identify({.address = "10.1.2.3", .trusted = {"carol"}})));
    EXPECT_FALSE(needs_csrf_header(Identity::open("127.0.0.1")));
}

TEST_F(TheAuthenticator, WithoutATokenFileKnowsNobodyAndLetsEverybodyIn) {
    const auto open = Authenticator::create({}, host_clock());
    ASSERT_TRUE(open);
    EXPECT_TRUE((*open)->is_open());
    EXPECT_EQ((*open)->identify({.address = "127.0.0.1"})->auth, Auth::open);
    EXPECT_FALSE((*open)->by_token(alice));
}

TEST_F(TheAuthenticator, RefusesOptionsThatContradictEachOther) {
    const std::vector<Network> some{*Network::parse("10.0.0.0/8")};
    for (const AuthenticatorOptions& options :
         {AuthenticatorOptions{.token_file = path, .trust_header = "X-User"},
          AuthenticatorOptions{.token_file = path, .trust_from = some},
          AuthenticatorOptions{.trust_header = "X-User", .trust_from = some},
          AuthenticatorOptions{.token_file = path, .trust_header = "X User", .trust_from = some},
          AuthenticatorOptions{.token_file = path, .trust_header = "X-User:", .trust_from = some},
          AuthenticatorOptions{.token_file = path, .trust_header = "authorization", .trust_from = some},
          AuthenticatorOptions{.token_file = path, .trust_header = "Host", .trust_from = some}})
        EXPECT_FALSE(Authenticator::create(options, host_clock())) << options.trust_header;
}

}  // namespace
}  // namespace holdfast::access
