// The token file as its owner meets it. What is in it, and who may have written it, is tested in tests/access.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class Tokens : public testing::Test {
protected:
    Sandbox box;
    void SetUp() override { box.environment["HOLDFAST_TOKEN_FILE"] = (box.work / "tokens").string(); }
};

TEST_F(Tokens, AreShownOnceAndListedWithoutTheirSecret) {
    const auto made = box.run({"token", "create", "ci", "--grant", "holder:team", "--grant", "viewer", "--json"});
    ASSERT_EQ(made.status, 0) << made.err;
    const Document document = made.json();
    const std::string token = document.text("/token");
    EXPECT_THAT(token, MatchesRegex("hft_[0-9a-f]{12}_[0-9a-f]{64}"));
    EXPECT_EQ(document.text("/user"), "ci");
    EXPECT_EQ(document.text("/grants/0"), "holder:team");
    EXPECT_EQ(document.text("/grants/1"), "viewer");
    EXPECT_FALSE(document.has("/expires_at"));

    const auto listed = box.run({"token", "list", "--json"});
    EXPECT_EQ(listed.json().size("/tokens"), 1U);
    EXPECT_EQ(listed.json().text("/tokens/0/id"), document.text("/id"));
    for (const auto& [path, content] : box.files()) EXPECT_THAT(content, Not(HasSubstr(token))) << path;
    EXPECT_THAT(listed.out + box.run({"token", "list"}).out, Not(HasSubstr(token.substr(17))));
}

TEST_F(Tokens, AreTheWholeOutputWithQuiet) {
    const auto made = box.run({"token", "create", "ci", "--grant", "viewer", "-q"});
    EXPECT_THAT(made.out, MatchesRegex("hft_[0-9a-f]{12}_[0-9a-f]{64}\n"));
}

TEST_F(Tokens, ThatWereRevokedAreGone) {
    const auto made = box.run({"token", "create", "ci", "--grant", "viewer", "--json"});
    const std::string id = made.json().text("/id");
    EXPECT_EQ(box.run({"token", "revoke", id, "--json"}).json().text("/revoked/id"), id);
    EXPECT_EQ(box.run({"token", "list", "--json"}).json().size("/tokens"), 0U);
    EXPECT_EQ(box.run({"token", "revoke", id, "--json"}).code(), "E_USAGE");
}

TEST_F(Tokens, ThatNobodySawAreNotValid) {
    const auto lost =
        box.run_program({"/bin/sh", "-c", "\"$0\" token create ci --grant viewer >/dev/full", box.program});
    EXPECT_EQ(lost.status, 125) << lost.err;
    EXPECT_EQ(box.run({"token", "list", "--json"}).json().size("/tokens"), 0U);
}

TEST_F(Tokens, AreMadeForNobodyByAccident) {
    const auto before = box.files();
    for (const Args& args :
         {Args{"create", "ci"}, Args{"create", "ci", "--grant", "holder:"}, Args{"create", "ci", "--grant", "root"},
          Args{"create", "", "--grant", "viewer"}, Args{"create", "ci", "--grant", "viewer", "--expires", "soon"},
          Args{"create", "ci", "--grant", "viewer", "--expires", "0s"}, Args{"create", "*", "--grant", "viewer"},
          Args{"create"}, Args{"revoke"}}) {
        Args all{"token", "--json"};
        all.insert(all.begin() + 1, args.begin(), args.end());
        EXPECT_EQ(box.run(all).code(), "E_USAGE") << testing::PrintToString(args);
    }
    EXPECT_EQ(box.files(), before) << "nothing was written";
    box.environment.erase("HOLDFAST_TOKEN_FILE");
    EXPECT_EQ(box.run({"token", "list", "--json"}).code(), "E_USAGE");
}

TEST_F(Tokens, NeedAFileThatCanBeRead) {
    EXPECT_EQ(box.run({"token", "list", "--json"}).code(), "E_STORE_UNAVAILABLE");
    box.write(box.work / "tokens", "{");
    EXPECT_EQ(box.run({"token", "list", "--json"}).code(), "E_CONFIG");
    EXPECT_EQ(box.run({"token", "create", "ci", "--grant", "viewer", "--json"}).code(), "E_CONFIG")
        << "a damaged file is not replaced by a new one";
}

}  // namespace
}  // namespace holdfast::cli_test
