// What status shows of many locks: patterns, old leases, the width of a terminal. And what goes with a lease.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

namespace holdfast::cli_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Status : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { box.environment["HOLDFAST_STORE"] = GetParam(); }

    std::vector<std::string> names(Args args) {
        args.insert(args.begin(), "status");
        args.emplace_back("--json");
        const auto document = box.run(args).json();
        std::vector<std::string> names;
        for (std::size_t i = 0; i < document.size("/locks"); ++i)
            names.push_back(document.text("/locks/" + std::to_string(i) + "/name"));
        return names;
    }
    void acquire(const std::string& name) { ASSERT_EQ(box.run({"acquire", name, "--ttl", "1h"}).status, 0) << name; }

    Sandbox box;
};

TEST_P(Status, OfAPatternIsThatOfTheLocksItMatches) {
    for (const char* name : {"migrate/a", "migrate/b/c", "migrates", "other", "[x]"}) acquire(name);
    EXPECT_THAT(names({"migrate/*"}), ElementsAre("migrate/a", "migrate/b/c"));
    EXPECT_THAT(names({"migrate/?"}), ElementsAre("migrate/a"));
    EXPECT_THAT(names({"*e*"}), ElementsAre("migrate/a", "migrate/b/c", "migrates", "other"));
    EXPECT_THAT(names({"none*"}), ElementsAre());
    EXPECT_EQ(names({}).size(), 5U);
    EXPECT_EQ(box.run({"status", "none*"}).status, 0);
    EXPECT_EQ(box.run({"status", "[x]", "--json"}).json().text("/name"), "[x]") << "no wildcard, so it is one lock";
}

TEST_P(Status, OfAllShowsFreeOnesToo) {
    acquire("held");
    const auto lease = box.run({"acquire", "free", "--json"}).json().text("/lease");
    ASSERT_EQ(box.run({"release", "free"}, {{"HOLDFAST_LEASE", lease}}).status, 0);
    EXPECT_THAT(names({}), ElementsAre("held"));
    EXPECT_THAT(names({"--all"}), ElementsAre("free", "held"));
    EXPECT_THAT(names({"f*", "--all"}), ElementsAre("free"));
    EXPECT_THAT(box.run({"status", "--all"}).out, HasSubstr("free\tfree\t-\t-\t-\t-\t0\t"));
}

TEST_P(Status, OnATerminalIsCutToItsWidth) {
    ASSERT_EQ(box.run({"acquire", "deploy/grün", "--ttl", "1h", "--holder", std::string(60, 'h'), "--operation",
                       "deploy \xc3\xbc" + std::string(60, 'x'), "-m", "why"})
                  .status,
              0);
    const auto longest = [&] {
        std::size_t most = 0;
        const auto shown = box.run_on_terminal({"status"}, "", Sandbox::Screen::all);
        for (const auto line : shown.err | std::views::split('\n')) {
            const std::string_view text(line.begin(), line.end());
            most = std::max<std::size_t>(most, static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
                                             return (static_cast<unsigned char>(c) & 0xc0) != 0x80 && c != '\r';
                                         })));
        }
        return most;
    };
    box.environment["NO_COLOR"] = "1";
    EXPECT_GT(longest(), 150U) << "nobody knows how wide it is";
    box.environment["COLUMNS"] = "100";
    EXPECT_LE(longest(), 100U);
    EXPECT_GT(longest(), 90U);
    const auto shown = box.run_on_terminal({"status"}, "", Sandbox::Screen::all);
    EXPECT_THAT(shown.err, HasSubstr("deploy/grün "));
    EXPECT_THAT(shown.err, HasSubstr("…"));
    EXPECT_THAT(box.run({"status"}).out, Not(HasSubstr("…"))) << "a pipe gets everything";
}

TEST_P(Status, TellsWhatGoesWithALease) {
    const Args acquire{"acquire", "a", "--ttl", "1h", "--meta", "build=42", "--meta", "url=http://x/?a=b,c"};
    ASSERT_EQ(box.run(acquire).status, 0);
    const auto document = box.run({"status", "a", "--json"}).json();
    EXPECT_EQ(document.text("/meta/build"), "42");
    EXPECT_EQ(document.text("/meta/url"), "http://x/?a=b,c");
    EXPECT_THAT(box.run({"status", "a"}).out, HasSubstr("meta       build=42\n"));
    EXPECT_EQ(box.run({"acquire", "b", "--json"}, {{"HOLDFAST_META", "k=v,w\nl="}}).json().text("/meta/k"), "v,w");
    EXPECT_EQ(box.run({"run", "c", "--meta", "k=v", "--", "sh", "-c", "\"$0\" status c --json", box.program})
                  .json()
                  .text("/meta/k"),
              "v");
    for (const char* bad : {"nothing", "=v", ""}) {
        const auto refused = box.run({"acquire", "d", "--meta", bad, "--json"});
        EXPECT_EQ(refused.status, 64) << bad;
        EXPECT_EQ(refused.code(), "E_USAGE") << bad;
    }
    EXPECT_EQ(box.run({"acquire", "d", "--meta", "k=1", "--meta", "k=2"}).status, 64);
    EXPECT_EQ(box.run({"acquire", "d", "--meta", "k=" + std::string(5000, 'v')}).status, 64);
}

TEST_P(Status, CheckCanAskForOneLease) {
    const auto grant = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    const std::string token = std::to_string(grant.number("/token"));
    const auto check = [&](const std::string& lock_id) {
        return box.run({"check", "a", "--token", token, "--lock-id", lock_id, "--json"});
    };
    EXPECT_EQ(check(grant.text("/lock_id")).status, 0);
    const std::string another = "00000000-0000-4000-8000-000000000000";
    EXPECT_EQ(check(another).code(), "E_FENCING_MISMATCH");
    EXPECT_EQ(check(another).status, 80);
    EXPECT_EQ(check("x").status, 64);
    // Inside of run the variable names the lock around, and says nothing of another one.
    EXPECT_EQ(box.run({"check", "a", "--token", token}, {{"HOLDFAST_LOCK_ID", another}}).status, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, Status, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
