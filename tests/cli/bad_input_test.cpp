// Everything that can never work is refused before a store is touched: the exit status and the stable
// code, one JSON document, and nothing written.
#include "sandbox.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

struct Case {
    std::string what;
    Args args;
    std::string code;
    Environment environment{};
};

std::vector<Case> cases() {
    const std::string lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    return {
        {"no command", {}, "E_USAGE"},
        {"unknown command", {"aquire", "a"}, "E_USAGE"},
        {"unknown flag", {"acquire", "a", "--tll", "1s"}, "E_USAGE"},
        {"unknown letter", {"acquire", "a", "-Z"}, "E_USAGE"},
        {"flag of another command", {"status", "--strict"}, "E_USAGE"},
        {"missing value", {"acquire", "a", "--ttl"}, "E_USAGE"},
        {"missing name", {"acquire"}, "E_USAGE"},
        {"one word too many", {"acquire", "a", "b"}, "E_USAGE"},
        {"empty name", {"acquire", ""}, "E_NAME_INVALID"},
        {"256 bytes of name", {"acquire", std::string(256, 'x')}, "E_NAME_INVALID"},
        {"control character in a name", {"acquire", "a\x1b[2J"}, "E_NAME_INVALID"},
        {"a way out of a folder", {"acquire", "../x"}, "E_NAME_INVALID"},
        {"newline in a name", {"status", "a\nb"}, "E_NAME_INVALID"},
        {"a name that is not UTF-8", {"acquire", "\xff\xfe"}, "E_NAME_INVALID"},
        {"bad name in unless-held", {"acquire", "a", "--unless-held", ""}, "E_NAME_INVALID"},
        {"a lock excluding itself", {"acquire", "a", "--unless-held", "a"}, "E_USAGE"},
        {"negative ttl", {"acquire", "a", "--ttl", "-5s"}, "E_USAGE"},
        {"ttl of nothing", {"acquire", "a", "--ttl", "0"}, "E_USAGE"},
        {"empty ttl", {"acquire", "a", "--ttl="}, "E_USAGE"},
        {"ttl without a unit", {"acquire", "a", "--ttl", "30"}, "E_USAGE"},
        {"absurd ttl", {"acquire", "a", "--ttl", "99999999999d"}, "E_USAGE"},
        {"overflowing ttl", {"acquire", "a", "--ttl", "999999999999999999999s"}, "E_USAGE"},
        {"negative wait", {"acquire", "a", "--wait", "-1s"}, "E_USAGE"},
        {"absurd wait", {"acquire", "a", "--wait", "99999999999d"}, "E_USAGE"},
        {"absurd max-hold", {"acquire", "a", "--max-hold", "99999999999d"}, "E_USAGE"},
        {"max-hold of nothing", {"acquire", "a", "--max-hold", "0"}, "E_USAGE"},
        {"empty holder", {"acquire", "a", "--holder", ""}, "E_USAGE"},
        {"control character in the holder", {"acquire", "a", "--holder", "x\ny"}, "E_USAGE"},
        {"a reason that is too long", {"acquire", "a", "-m", std::string(2000, 'x')}, "E_USAGE"},
        {"waiting with a holder that is too long",
         {"acquire", "a", "--wait", "1s", "--holder", std::string(2000, 'x')},
         "E_USAGE"},
        {"bad choice", {"acquire", "a", "--if-held", "maybe"}, "E_USAGE"},
        {"bad format", {"acquire", "a", "--format", "xml"}, "E_USAGE"},
        {"bad exit status", {"acquire", "a", "-E", "256"}, "E_USAGE"},
        {"exit status that is no number", {"acquire", "a", "-E", "x"}, "E_USAGE"},
        {"no lease", {"renew", "a"}, "E_USAGE"},
        {"bad lease", {"release", "a", "--lease", "nonsense"}, "E_USAGE"},
        {"half a lease", {"release", "a", "--lease", "00000000-0000-4000-8000-000000000000."}, "E_USAGE"},
        {"renewal by nothing", {"renew", "a", "--lease", lease, "--ttl", "0"}, "E_USAGE"},
        {"transfer to nobody", {"transfer", "a", "--lease", lease}, "E_USAGE"},
        {"transfer to an empty name", {"transfer", "a", "--lease", lease, "--to", ""}, "E_USAGE"},
        {"no token", {"check", "a"}, "E_USAGE"},
        {"negative token", {"check", "a", "--token", "-1"}, "E_USAGE"},
        {"token beyond 2^53", {"check", "a", "--token", "9007199254740993"}, "E_USAGE"},
        {"hold without end", {"hold", "a", "-m", "x"}, "E_USAGE"},
        {"expecting nonsense", {"unlock", "a", "--yes", "--expect", "x"}, "E_USAGE"},
        {"override without a verb", {"override"}, "E_USAGE"},
        {"override with an unknown verb", {"override", "steal", "a"}, "E_USAGE"},
        {"unknown shell", {"completion", "tcsh"}, "E_USAGE"},
        {"bad limit", {"history", "--limit", "-1"}, "E_USAGE"},
        {"bad since", {"history", "--since", "yesterday"}, "E_USAGE"},
        {"unknown store", {"acquire", "a", "--store", "carrier-pigeon:x"}, "E_USAGE"},
        {"a store that is no URL", {"acquire", "a", "--store", "locks.db"}, "E_USAGE"},
        {"an empty store", {"acquire", "a", "--store", ""}, "E_USAGE"},
        {"two stores", {"acquire", "a", "-s", "sqlite:x", "-s", "sqlite:y"}, "E_USAGE"},
        {"unknown parameter of a store", {"acquire", "a", "-s", "sqlite:x?snyc=off"}, "E_USAGE"},
        {"a session on a store without sessions", {"acquire", "a", "--session"}, "E_USAGE"},
        {"bad ttl in the environment", {"acquire", "a"}, "E_USAGE", {{"HOLDFAST_TTL", "soon"}}},
        {"bad switch in the environment", {"acquire", "a"}, "E_USAGE", {{"HOLDFAST_QUIET", "perhaps"}}},
        {"bad lease in the environment", {"release", "a"}, "E_USAGE", {{"HOLDFAST_LEASE", "x"}}},
        {"missing configuration", {"acquire", "a", "--config", "nowhere.toml"}, "E_CONFIG"},
        {"configuration that is a folder", {"acquire", "a", "--config", "/"}, "E_CONFIG"},
        {"missing secret file", {"acquire", "a"}, "E_CONFIG", {{"HOLDFAST_STORE_FILE", "nowhere"}}},
        {"no home", {"acquire", "a"}, "E_CONFIG", {{"HOME", ""}, {"XDG_STATE_HOME", ""}}},
    };
}

TEST(BadInput, IsRefusedWithItsCodeAndWritesNothing) {
    for (const Case& test : cases()) {
        Sandbox box;
        const auto before = box.files();
        const int status = test.code == "E_CONFIG" ? 78 : 64;

        Args with_json = test.args;
        with_json.emplace_back("--json");
        const auto document = box.run(with_json, test.environment);
        EXPECT_EQ(document.status, status) << test.what << ": " << document.out;
        EXPECT_EQ(document.code(), test.code) << test.what;
        EXPECT_EQ(document.err, "") << test.what;

        const auto text = box.run(test.args, test.environment);
        EXPECT_EQ(text.status, status) << test.what;
        EXPECT_EQ(text.out, "") << test.what;
        EXPECT_THAT(text.err, testing::StartsWith(fmt::format("holdfast: {}: ", test.code))) << test.what;
        EXPECT_THAT(text.err, testing::Not(testing::HasSubstr("\x1b"))) << test.what;
        EXPECT_EQ(box.files(), before) << test.what;
    }
}

TEST(BadInput, NamesWhatMayHaveBeenMeant) {
    Sandbox box;
    EXPECT_THAT(box.run({"aquire", "a"}).err, testing::HasSubstr("acquire"));
    EXPECT_THAT(box.run({"acquire", "a", "--tll", "1s"}).err, testing::HasSubstr("--ttl"));
    EXPECT_THAT(box.run({"override", "requst", "a"}).err, testing::HasSubstr("request"));
}

// A JSON document is asked for on the command line or in the environment, and both count for errors too.
TEST(BadInput, IsADocumentAlsoWhenTheEnvironmentAsksForOne) {
    Sandbox box;
    EXPECT_EQ(box.run({"acquire", "a", "--nonsense"}, {{"HOLDFAST_JSON", "1"}}).code(), "E_USAGE");
    for (const Args& args : std::vector<Args>{{"--help", "--json"}, {"--json", "run", "--help"}, {"help", "--json"}})
        EXPECT_THAT(box.run(args).json().text("/help"), testing::HasSubstr("Usage: "));
}

}  // namespace
}  // namespace holdfast::cli_test
