// Small parts of the command line by themselves.
#include "cli/nearest.hpp"
#include "cli/option.hpp"
#include "cli/parse.hpp"
#include "cli/places.hpp"
#include "cli/process_list.hpp"
#include "cli/show.hpp"
#include "json/value.hpp"

#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

TEST(Nearest, FindsASlipOfThePenAndNothingElse) {
    const std::vector<std::string> known{"--ttl", "--wait", "--reason"};
    EXPECT_EQ(nearest("--tll", known), "--ttl");
    EXPECT_EQ(nearest("--resaon", known), "--reason");
    EXPECT_EQ(nearest("--completely-different", known), "");
    EXPECT_EQ(nearest("", {"a"}), "");
    EXPECT_EQ(nearest(std::string(100'000, 'x'), known), "");
}

TEST(ShellQuoting, LeavesPlainWordsAndMakesAnythingElseOneWord) {
    EXPECT_EQ(shell_quoted("migrate/prod"), "migrate/prod");
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_EQ(shell_quoted("a b"), "'a b'");
    EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_quoted("$(x)"), "'$(x)'");
    EXPECT_EQ(shell_quoted("~"), "'~'");
}

TEST(StoreInAFile, CountsRelativePathsFromThatFilesFolder) {
    EXPECT_EQ(store_from("sqlite:locks.db", "/p"), "sqlite:/p/locks.db");
    EXPECT_EQ(store_from("file:a/b?sync=off", "/p"), "file:/p/a/b?sync=off");
    EXPECT_EQ(store_from("sqlite:x", "/100%?"), "sqlite:/100%25%3f/x");
    EXPECT_EQ(store_from("sqlite:/abs", "/p"), "sqlite:/abs");
    EXPECT_EQ(store_from("redis://h/0", "/p"), "redis://h/0");
    EXPECT_EQ(store_from("memory:", "/p"), "memory:");
    EXPECT_EQ(store_from("nonsense", "/p"), "nonsense");
}

std::vector<std::string> given(const std::vector<std::string>& args, const std::string& option) {
    const auto line = parse(args);
    if (!line) return {line.error().message};
    const auto found = line->given.find(option);
    return found == line->given.end() ? std::vector<std::string>{} : found->second;
}

TEST(CommandLine, AValueStandsBesideItsFlagOrBehindIt) {
    using Values = std::vector<std::string>;
    EXPECT_EQ(given({"acquire", "a", "--reason", "why"}, "reason"), Values{"why"});
    EXPECT_EQ(given({"acquire", "a", "--reason=why=not"}, "reason"), Values{"why=not"});
    EXPECT_EQ(given({"acquire", "a", "--reason="}, "reason"), Values{""});
    EXPECT_EQ(given({"acquire", "a", "--reason=--x"}, "reason"), Values{"--x"});
    EXPECT_EQ(given({"acquire", "a", "--reason", "-x"}, "reason"), Values{"-x"});
    EXPECT_EQ(given({"acquire", "a", "-m", "why"}, "reason"), Values{"why"});
    EXPECT_EQ(given({"acquire", "a", "-mwhy"}, "reason"), Values{"why"});
    EXPECT_EQ(given({"acquire", "a", "-qvmwhy"}, "reason"), Values{"why"});
    EXPECT_EQ(given({"acquire", "a", "--reason", "[a,b]"}, "reason"), Values{"[a,b]"});
}

TEST(CommandLine, TheLastValueCountsUnlessAllDo) {
    using Values = std::vector<std::string>;
    EXPECT_EQ(given({"acquire", "a", "--ttl", "1s", "--ttl=2s"}, "ttl"), Values{"2s"});
    EXPECT_EQ(given({"acquire", "a", "--unless-held", "b", "--unless-held=c"}, "unless-held"), (Values{"b", "c"}));
}

TEST(CommandLine, SwitchesTakeNoValueOfTheirOwn) {
    using Values = std::vector<std::string>;
    EXPECT_EQ(given({"acquire", "--json", "a"}, "json"), Values{"on"});
    EXPECT_EQ(given({"acquire", "a", "--json=off"}, "json"), Values{"off"});
    EXPECT_EQ(given({"acquire", "a", "-qv"}, "quiet"), Values{"on"});
    EXPECT_EQ(given({"acquire", "a", "-qv"}, "verbose"), Values{"on"});
    EXPECT_EQ(parse({"acquire", "-q", "a"})->words, Values{"a"});
}

TEST(CommandLine, WhatIsNoFlagIsRefusedOrAWord) {
    using Values = std::vector<std::string>;
    EXPECT_EQ(given({"acquire", "a", "--tll=5s"}, ""), Values{"acquire has no flag --tll; did you mean --ttl?"});
    EXPECT_EQ(given({"acquire", "a", "-qZ"}, ""), Values{"acquire has no flag -qZ"});
    EXPECT_EQ(given({"acquire", "a", "-qm"}, ""), Values{"-qm needs a value"});
    EXPECT_EQ(given({"acquire", "a", "--ttl", "--json"}, ""), Values{"--ttl needs a value"});
    EXPECT_EQ(parse({"acquire", "-"})->words, Values{"-"});
    EXPECT_EQ(parse({"acquire", "-5"})->words, Values{"-5"});
}

TEST(OptionNames, FollowFromTheFlag) {
    EXPECT_EQ(variable_of(opt::max_hold), "HOLDFAST_MAX_HOLD");
    EXPECT_EQ(key_of(opt::max_hold), "max_hold");
    EXPECT_EQ(spelling_of(opt::reason), "-m, --reason T");
}

TEST(ProcessList, ShowsAllButPasswordsAndLeaseKeys) {
    const std::string lease = "0d5a1a5e-9a0b-4a54-9a52-7e5b7f1c9d10.00112233445566778899aabbccddeeff";
    const std::vector<std::pair<std::string, std::string>> shown{
        {"migrate/prod", "migrate/prod"},
        {"", ""},
        {"postgres://ann:pw@h:5432/db?schema=s", "postgres://ann:xx@h:5432/db?schema=s"},
        {"--store=redis://:p@w@h/0", "--store=redis://:xxx@h/0"},
        {"mysql://ann@h:3306/db", "mysql://ann@h:3306/db"},
        {"postgres://h/db?password=pw&sslmode=off", "postgres://h/db?password=xx&sslmode=off"},
        {"postgres://h/db?sslpassword=pw", "postgres://h/db?sslpassword=xx"},
        {"--lease=" + lease, "--lease=" + lease.substr(0, 37) + std::string(32, 'x')},
        {lease + "0", lease.substr(0, 37) + std::string(33, 'x')},
        {"file.00112233", "file.00112233"}};
    for (const auto& [given, expected] : shown) {
        std::string argument = given;
        char* const text = argument.data();
        hide_secrets({&text, 1});
        EXPECT_EQ(argument, expected);
    }
}

TEST(Parsing, TakesFlagsBeforeAndAfterTheCommand) {
    const auto line = parse({"--json", "-s", "memory:", "override", "-q", "request", "name", "--reason=x y"});
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->command->name, "override request");
    EXPECT_EQ(line->words, std::vector<std::string>{"name"});
    EXPECT_EQ(line->given.at("reason"), std::vector<std::string>{"x y"});
    EXPECT_EQ(line->given.at("store"), std::vector<std::string>{"memory:"});
    EXPECT_EQ(line->given.at("quiet"), std::vector<std::string>{"on"});
}

TEST(Parsing, LetsTheLastValueCountAndKeepsListsWhole) {
    const auto line =
        parse({"acquire", "a", "--ttl", "1s", "--ttl", "2s", "--unless-held", "[x,y]", "--unless-held", "z"});
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->given.at("ttl"), std::vector<std::string>{"2s"});
    EXPECT_EQ(line->given.at("unless-held"), (std::vector<std::string>{"[x,y]", "z"}));
}

TEST(Parsing, AnEmptyValueDoesNotSwallowTheNextWord) {
    const auto line = parse({"release", "--lease=", "a"});
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->words, std::vector<std::string>{"a"});
    EXPECT_EQ(line->given.at("lease"), std::vector<std::string>{""});
}

TEST(Json, WritesAnyTextAsAValidDocument) {
    EXPECT_EQ(json::Value::text("a\"b\\\n").written(), R"("a\"b\\\n")");
    EXPECT_EQ(json::Value::text("\xff").written(), R"("\\xff")");
    EXPECT_EQ(json::Value::text_or_null("").written(), "null");
    EXPECT_EQ(json::Object().set("a", json::Value::array({json::Value::boolean(true), json::Value()})).done().written(),
              R"({"a":[true,null]})");
}

}  // namespace
}  // namespace holdfast::cli
