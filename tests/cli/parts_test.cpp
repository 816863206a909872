// Small parts of the command line by themselves.
#include "cli/command.hpp"
#include "cli/option.hpp"
#include "cli/parse.hpp"
#include "cli/pattern.hpp"
#include "cli/process_list.hpp"
#include "cli/show.hpp"
#include "json/lease_list.hpp"
#include "json/value.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

TEST(LeaseList, IsReadAsItIsWrittenAndNothingElseIs) {
    const json::ListedLease whole{StoreId::random(), *LockName::parse("it's \"a\" \\ b"),
                                  FencingToken{FencingToken::limit - 1}, Credentials::random()};
    const json::ListedLease bare{.name = *LockName::parse("b"), .as = Credentials::random()};
    const std::string text = json::lease_list({whole, bare}).written();
    const auto read = json::parse_lease_list(text);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->size(), 2U);
    EXPECT_EQ(json::lease_list(*read).written(), text);
    EXPECT_EQ(read->front().as, whole.as);

    for (std::size_t length = 0; length < text.size(); ++length)
        EXPECT_FALSE(json::parse_lease_list(text.substr(0, length))) << length;
    const auto refused = [&](const std::string& old, const std::string& instead) {
        std::string changed = text;
        changed.replace(changed.find(old), old.size(), instead);
        return !json::parse_lease_list(changed);
    };
    EXPECT_TRUE(refused(std::to_string(FencingToken::limit - 1), std::to_string(FencingToken::limit)));
    EXPECT_TRUE(refused(std::to_string(FencingToken::limit - 1), "-1"));
    EXPECT_TRUE(refused(std::to_string(FencingToken::limit - 1), "\"5\""));
    EXPECT_TRUE(refused(whole.store_id->text(), "x"));
    EXPECT_TRUE(refused(whole.as.lock_id.text(), LockId::random().text())) << "the lock_id is not that of the lease";
    EXPECT_TRUE(refused("\"b\"", "\"\"")) << "no name";
}

TEST(Listing, LeavesOutLeasesThatRanOutOverADayAgo) {
    LockStatus status{.name = *LockName::parse("a")};
    status.as_of = Instant{std::chrono::hours{1000}};
    EXPECT_FALSE(ran_out_long_ago(status)) << "free";
    status.lease.emplace();
    status.state = LockState::expired;
    status.lease->expires_at = status.as_of - std::chrono::hours{24};
    EXPECT_FALSE(ran_out_long_ago(status));
    status.lease->expires_at -= std::chrono::milliseconds{1};
    EXPECT_TRUE(ran_out_long_ago(status));
    status.state = LockState::held;
    EXPECT_FALSE(ran_out_long_ago(status)) << "whatever its time says";
}

TEST(Pattern, HasAWildcard) {
    for (const char* name : {"", "a", "a[b]", "a\\b"}) EXPECT_FALSE(is_pattern(name)) << name;
    for (const char* pattern : {"*", "a?", "migrate/*"}) EXPECT_TRUE(is_pattern(pattern)) << pattern;
    EXPECT_EQ(prefix_of("migrate/*x"), "migrate/");
    EXPECT_EQ(prefix_of("a[b]*"), "a");
    EXPECT_TRUE(matches("", *LockName::parse("a")));
    EXPECT_TRUE(matches("a*c", *LockName::parse("a/b/c")));
    EXPECT_FALSE(matches("a?c", *LockName::parse("abbc")));
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
    EXPECT_EQ(parse({"acquire", "-"}).value().words, Values{"-"});
    EXPECT_EQ(parse({"acquire", "-5"}).value().words, Values{"-5"});
}

TEST(CommandLine, ACommandWithoutItsDashesIsRecognised) {
    for (const std::vector<std::string>& args : {std::vector<std::string>{"run", "x", "ls", "-l"},
                                                 {"run", "x", "ls"},
                                                 {"run", "--ttl", "5s", "x", "ls", "--all"},
                                                 {"run", "x", "ls", "-n"}}) {
        const auto line = parse(args);
        ASSERT_FALSE(line);
        EXPECT_EQ(line.error().message, "put -- before the command: holdfast run x -- ls …");
    }
    EXPECT_EQ(parse({"run", "x", "-l"}).error().message, "run has no flag -l");
    EXPECT_EQ(parse({"run", "x", "y", "--", "ls"}).error().message, "run does not take \"y\"");
}

TEST(CommandLine, AWordOfAnotherProgramLeadsToOurs) {
    EXPECT_EQ(parse({"lock", "a"}).error().message, "there is no command \"lock\"; did you mean acquire?");
    EXPECT_EQ(parse({"list"}).error().message, "there is no command \"list\"; did you mean status?");
    EXPECT_EQ(parse({"unlok", "a"}).error().message, "there is no command \"unlok\"; did you mean unlock?");
}

TEST(CommandLine, AMissingOrMisspeltVerbIsAnsweredWithAllOfThem) {
    std::map<std::string, std::vector<std::string>> verbs;
    for (const Command* command : commands())
        if (const auto space = command->name.find(' '); space != std::string_view::npos)
            verbs[std::string(command->name.substr(0, space))].emplace_back(command->name.substr(space + 1));
    ASSERT_FALSE(verbs.empty());
    for (const auto& [word, all] : verbs) {
        const std::string answer = fmt::format("{} is followed by {}", word, fmt::join(all, ", "));
        for (const std::vector<std::string>& args :
             {std::vector<std::string>{word}, {word, "--json"}, {word, "-s", "x"}, {word, "quite-different"}}) {
            const auto line = parse(args);
            ASSERT_FALSE(line);
            EXPECT_EQ(line.error().code, Errc::usage);
            EXPECT_EQ(line.error().message, answer);
        }
        for (const std::string& verb : all)
            EXPECT_EQ(parse({word, verb.substr(0, verb.size() - 1), "a"}).error().message,
                      fmt::format("{}; did you mean {}?", answer, verb));
    }
    EXPECT_EQ(parse({}).error().message, "a command is missing");
    EXPECT_EQ(parse({"--json", "-s", "status"}).error().message, "a command is missing") << "that is a store";
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
        {"http://token@h:7420", "http://xxxxx@h:7420"},
        {"--store=https://t:u@h", "--store=https://xxx@h"},
        {"http://h:7420", "http://h:7420"},
        {"postgres://h/db?password=pw&sslmode=off", "postgres://h/db?password=xx&sslmode=off"},
        {"postgres://h/db?sslpassword=pw", "postgres://h/db?sslpassword=xx"},
        {"--lease=" + lease, "--lease=" + lease.substr(0, 37) + std::string(32, 'x')},
        {lease + "0", lease.substr(0, 37) + std::string(33, 'x')},
        {"--lease=./" + lease, "--lease=./" + lease.substr(0, 37) + std::string(32, 'x')},
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

TEST(Parsing, NothingBehindTheDashesIsOurs) {
    const std::vector<std::string> theirs{"-h", "--help", "--version",   "--json", "--ttl",
                                          "1s", "-q",     "--format=sh", "--"};
    std::vector<std::string> args{"run", "a", "--"};
    args.insert(args.end(), theirs.begin(), theirs.end());
    const auto all = parse(args);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ(all->command->name, "run");
    EXPECT_EQ(all->tail, theirs);
    EXPECT_EQ(all->words, std::vector<std::string>{"a"});
    EXPECT_TRUE(all->given.empty());
    for (const std::string& word : theirs) {
        const auto run = parse({"run", "a", "--", "ls", word});
        ASSERT_TRUE(run) << word;
        EXPECT_EQ(run->command->name, "run") << word;
        EXPECT_EQ(run->tail, (std::vector<std::string>{"ls", word})) << word;
        const auto acquire = parse({"acquire", "--", word});
        ASSERT_TRUE(acquire) << word;
        EXPECT_EQ(acquire->command->name, "acquire") << word;
        EXPECT_EQ(acquire->words, std::vector<std::string>{word}) << "a name may look like a flag there";
        EXPECT_TRUE(acquire->given.empty()) << word;
    }
}

TEST(Parsing, HelpAndVersionCountWhereverTheyStandInFrontOfTheDashes) {
    using Words = std::vector<std::string>;
    for (const char* help : {"-h", "--help"}) {
        for (const Words& args : {Words{help}, Words{help, "--json"}, Words{help, "nonsense"}}) {
            ASSERT_TRUE(parse(args));
            EXPECT_EQ(parse(args)->command->name, "help");
            EXPECT_EQ(parse(args)->words, Words{});
        }
        for (const Words& args : {Words{help, "acquire"}, Words{"acquire", help}, Words{"acquire", "a", help},
                                  Words{"acquire", "--nonsense", help}, Words{"acquire", help, "--", "x"}})
            EXPECT_EQ(parse(args)->words, Words{"acquire"});
        EXPECT_EQ(parse({"override", "deny", "a", help})->words, (Words{"override", "deny"}));
        EXPECT_EQ(parse({"override", help})->words, Words{"override"});
    }
    EXPECT_EQ(parse({"--version"})->command->name, "version");
    EXPECT_EQ(parse({"--json", "--version"})->command->name, "version");
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
    EXPECT_EQ(json::Value::text("\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81").written(),
              R"("\u007f\u009b\u202e\udb40\udc01")");
    EXPECT_EQ(json::Value::text_or_null("").written(), "null");
    EXPECT_EQ(json::Object().set("a", json::Value::array({json::Value::boolean(true), json::Value()})).done().written(),
              R"({"a":[true,null]})");
}

}  // namespace
}  // namespace holdfast::cli
