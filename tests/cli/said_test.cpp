// What a flag says ends up in the field that it is for: in the lock, in the audit log, in the words for people.
#include "sandbox.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace holdfast::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Said : public testing::Test {
protected:
    Said() { box.environment["HOLDFAST_STORE"] = "sqlite:locks.db"; }

    /// The newest event of the lock `a`: kind, holder, new holder, actor and reason.
    std::string newest() {
        const auto events = box.run({"history", "a", "--json"}).json();
        const std::string last = fmt::format("/events/{}", events.size("/events") - 1);
        return fmt::format("{} {} {} {} {}", events.text(last + "/event"), events.text(last + "/holder"),
                           events.text(last + "/user"), events.text(last + "/actor"), events.text(last + "/reason"));
    }
    void expect_done(const Args& args, const std::string& event) {
        const auto done = box.run(args, lease);
        EXPECT_EQ(done.status, 0) << fmt::format("{}", fmt::join(args, " ")) << done.err;
        EXPECT_EQ(newest(), event) << fmt::format("{}", fmt::join(args, " "));
    }

    Sandbox box;
    Environment lease{};
};

TEST_F(Said, EveryFlagThatTellsSomethingIsInTheAuditLog) {
    const auto mine = box.run({"acquire", "a", "--holder", "me", "--user", "my boss", "--operation", "work", "-m",
                               "my reason", "--ttl", "1h", "--max-hold", "2h", "--json"});
    EXPECT_EQ(newest(), "acquired me my boss null my reason");
    for (const auto& [field, value] : {std::pair<std::string, std::string>{"/holder", "me"},
                                       {"/user", "my boss"},
                                       {"/operation", "work"},
                                       {"/reason", "my reason"}})
        EXPECT_EQ(mine.json().text(field), value);
    EXPECT_TRUE(mine.json().has("/max_until"));
    lease = {{"HOLDFAST_LEASE", mine.json().text("/lease")}};
    expect_done({"renew", "a", "--ttl", "30m"}, "renewed me my boss null null");
    expect_done({"transfer", "a", "--to", "heir", "--user", "their boss", "-m", "I go home"},
                "transferred heir their boss me I go home");
    lease.clear();
    expect_done({"override", "request", "a", "--holder", "asker", "--user", "its boss", "-m", "please"},
                "override_requested asker its boss null please");
    expect_done({"override", "deny", "a", "--holder", "operator", "-m", "not now"},
                "override_denied asker its boss operator not now");
    ASSERT_EQ(box.run({"override", "request", "a", "--holder", "second", "-m", "now?", "--ttl", "20m"}).status, 0);
    expect_done({"override", "approve", "a", "--holder", "operator", "-m", "fine"},
                "override_approved second null operator fine");
    EXPECT_GT(box.run({"status", "a", "--json"}).json().number("/expires_in_ms"), 15 * 60'000);
    expect_done({"unlock", "a", "--yes", "--holder", "admin", "-m", "it hangs"}, "broken second null admin it hangs");
    expect_done({"hold", "a", "--for", "1h", "-m", "upgrade", "--holder", "dba", "--user", "all", "--operation", "up"},
                "acquired dba all null upgrade");
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/operation"), "up");
    expect_done({"prune", "--keep", "0", "--holder", "cron", "-m", "old"}, "pruned dba all cron old");
}

TEST_F(Said, WithoutAHolderItIsThisProcessAlsoIfAUserIsNamed) {
    const auto granted = box.run({"acquire", "a", "--user", "boss", "--json"}).json();
    EXPECT_EQ(granted.text("/user"), "boss");
    EXPECT_THAT(granted.text("/holder"), Not(HasSubstr("boss")));
    EXPECT_EQ(box.run({"acquire", "b", "--json"}, {{"HOLDFAST_USER", "other"}}).json().text("/user"), "other");
}

TEST_F(Said, PeopleReadWhoWhenAndWhy) {
    ASSERT_EQ(box.run({"acquire", "a", "--holder", "me", "--user", "boss", "-m", "why", "--ttl", "50ms"}).status, 0);
    ASSERT_TRUE(eventually([&] { return box.run({"status", "a", "--json"}).json().text("/state") == "expired"; }));
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().number("/expires_in_ms"), 0) << "never below nothing";
    EXPECT_THAT(box.run({"status"}).out, AllOf(StartsWith("a\texpired\t"), HasSubstr(" ago\tme for boss\t-\twhy\t0\t")))
        << "an empty field keeps its place";
    EXPECT_THAT(box.run({"status", "a"}).out, HasSubstr("state      expired\n"));
    EXPECT_THAT(box.run({"unlock", "a"}).err, AllOf(HasSubstr("a is held by me for boss since "),
                                                    HasSubstr("(why), expired "), HasSubstr(" ago, lock_id ")));
    const auto taken = box.run({"acquire", "a", "--holder", "next", "--ttl", "1h"});
    EXPECT_THAT(taken.out, HasSubstr("it was taken over from me for boss, whose lease ran out at "));
    EXPECT_THAT(box.run({"history", "a"}).out, AllOf(HasSubstr("  (why)\n"), HasSubstr("  from me\n")));
    ASSERT_EQ(box.run({"unlock", "a", "--yes", "--holder", "admin", "-m", "it hangs"}).status, 0);
    EXPECT_THAT(box.run({"history", "a"}).out, HasSubstr("  by admin  (it hangs)"));
}

TEST_F(Said, WhatWasStolenIsInTheDocument) {
    const auto first = box.run({"acquire", "a", "--holder", "me", "--ttl", "50ms", "--json"}).json();
    EXPECT_FALSE(first.has("/stolen_from"));
    const auto taken = box.run({"acquire", "a", "--holder", "next", "--wait", "30s", "--json"}).json();
    EXPECT_EQ(taken.text("/stolen_from/holder"), "me");
    EXPECT_EQ(taken.text("/stolen_from/lock_id"), first.text("/lock_id"));
    EXPECT_EQ(taken.text("/stolen_from/token"), first.text("/token"));
    EXPECT_EQ(taken.text("/stolen_from/expired_at"), first.text("/expires_at"));
    EXPECT_FALSE(taken.yes("/joined"));
}

// Only what was asked for: cron mails everything else.
TEST_F(Said, WithQuietNothingButTheLeaseIsSaid) {
    const auto granted = box.run({"acquire", "a", "-q", "--ttl", "1h"});
    EXPECT_THAT(granted.out, testing::MatchesRegex("[0-9a-f-]*\\.[0-9a-f]*\n"));
    lease = {{"HOLDFAST_LEASE", granted.out.substr(0, granted.out.size() - 1)},
             {"HOLDFAST_TOKEN", box.run({"status", "a", "--json"}).json().text("/token")}};
    for (const Args& args : std::vector<Args>{{"renew", "a"},
                                              {"check", "a"},
                                              {"override", "list"},
                                              {"prune"},
                                              {"init"},
                                              {"history", "none"},
                                              {"status", "-s", "sqlite:empty.db"},
                                              {"release", "a"},
                                              {"release", "a", "--if-held"}}) {
        Args quiet = args;
        quiet.emplace_back("-q");
        const auto said = box.run(quiet, lease);
        EXPECT_EQ(said.status, 0) << args[0] << said.err;
        EXPECT_EQ(said.out + said.err, "") << args[0];
    }
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    ASSERT_EQ(box.run({"override", "request", "a", "-q"}).status, 0);
    const auto approved = box.run({"override", "approve", "a", "-q"});
    EXPECT_EQ(approved.out + approved.err, "");
    EXPECT_EQ(box.run({"unlock", "a", "-q", "--yes"}).out, "");
}

TEST_F(Said, WithVerboseTheStoreAndTheConfigurationAreNamed) {
    // It depends on the file system that the temporary folder is on.
    const std::string grade = box.run({"doctor", "--json"}).json().text("/grade");
    const std::string begin = fmt::format("holdfast: store sqlite:locks.db, grade {}, ", grade);
    EXPECT_EQ(box.run({"status", "-v"}).err, begin + "no configuration file\nno lock is held\n");
    box.write(box.work / "holdfast.toml", "");
    EXPECT_THAT(box.run({"status", "-v"}).err, StartsWith(begin + (box.work / "holdfast.toml").string() + "\n"));
    EXPECT_THAT(box.run({"status", "-v", "--config", "/dev/null"}).err, HasSubstr(", /dev/null\n"));
}

TEST_F(Said, ASkippedConflictIsToldOnlyWhenAskedForButIsADocument) {
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h", "--holder", "them"}).status, 0);
    for (const Args& args :
         {Args{"acquire", "a", "--if-held", "skip"}, Args{"acquire", "a", "--if-held=skip", "-E", "9"},
          Args{"hold", "a", "--for", "1h", "-m", "x", "--if-held", "skip"}}) {
        const auto silent = box.run(args);
        EXPECT_EQ(silent.status, 0);
        EXPECT_EQ(silent.out + silent.err, "") << args[0];
        Args verbose = args;
        verbose.emplace_back("-v");
        EXPECT_THAT(box.run(verbose).err, HasSubstr("holdfast: skipped: a is held by them since "));
        Args json = args;
        json.emplace_back("--json");
        const auto document = box.run(json);
        EXPECT_EQ(document.status, 0);
        EXPECT_EQ(document.code(), "E_LOCK_CONFLICT");
        EXPECT_EQ(document.json().text("/error/holder/holder"), "them");
        Args shell = args;
        shell.emplace_back("--format=sh");
        EXPECT_THAT(box.run(shell).out, HasSubstr("*) exit 0;;")) << "a script must not go on without the lock";
        Args format = args;
        format.emplace_back("--format=json");
        EXPECT_EQ(box.run(format).code(), "E_LOCK_CONFLICT");
    }
}

TEST_F(Said, JsonAsAFormatIsTheSameDocument) {
    for (const Args& args : {Args{"acquire", "a", "--format", "json"}, Args{"acquire", "b", "--format=json"}})
        EXPECT_TRUE(box.run(args).json().has("/lease"));
    EXPECT_TRUE(box.run({"acquire", "c"}, {{"HOLDFAST_FORMAT", "json"}}).json().has("/lease"));
    EXPECT_EQ(box.run({"acquire", "a", "--format=json", "--nonsense"}).code(), "E_USAGE");
    EXPECT_EQ(box.run({"acquire", "a", "--json=on", "--nonsense"}).code(), "E_USAGE");
    EXPECT_EQ(box.run({"acquire", "a", "--json=off", "--nonsense"}, {{"HOLDFAST_JSON", "on"}}).out, "");
}

// Two holders of different leases: the one that was named counts, and no other.
TEST_F(Said, ALeaseOnTheCommandLineIsTheOnlyOneThatIsTried) {
    const std::string stranger = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    for (const Environment& environment :
         {Environment{{"HOLDFAST_LEASE", mine.text("/lease")}},
          Environment{{"HOLDFAST_LEASE", mine.text("/lease")}, {"HOLDFAST_LOCK", "a"}}})
        for (const Args& args : {Args{"renew", "a"}, Args{"release", "a"}, Args{"transfer", "a", "--to", "x"}}) {
            Args with_lease = args;
            with_lease.insert(with_lease.end(), {"--lease", stranger, "--json"});
            EXPECT_EQ(box.run(with_lease, environment).code(), "E_LOCK_NOT_HELD") << args[0];
        }
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), mine.text("/lock_id"));
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().number("/renew_seq"), 0);
    // The other way round, a good one on the command line is not spoilt by the environment.
    EXPECT_EQ(box.run({"renew", "a", "--lease", mine.text("/lease")}, {{"HOLDFAST_LEASE", stranger}}).status, 0);
}

TEST_F(Said, AListOfLeasesThatIsNoneIsRefusedByEveryCommandThatReadsIt) {
    const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    const Environment broken{{"HOLDFAST_LEASE", mine.text("/lease")}, {"HOLDFAST_LEASES", "[{\"lease\":\"hunter2\"}"}};
    for (const Args& args : {Args{"acquire", "a"}, Args{"renew", "a"}, Args{"release", "a"}, Args{"check", "a"},
                             Args{"transfer", "a", "--to", "x"}, Args{"run", "a", "--", "true"}}) {
        const auto refused = box.run(args, broken);
        EXPECT_EQ(refused.status, 64) << args[0];
        EXPECT_THAT(refused.err, AllOf(HasSubstr("HOLDFAST_LEASES"), Not(HasSubstr("hunter2")))) << args[0];
    }
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), mine.text("/lock_id"));
}

// `run` numbers what it passes on; of several leases of one lock the one that holds it counts, wherever it stands.
TEST_F(Said, EveryLeaseInTheEnvironmentIsTriedInItsPlace) {
    const std::string stranger = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    for (const std::size_t place : {1U, 2U, 3U})
        for (const std::string others : {"b", "a"}) {
            const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
            Environment all;
            for (const std::size_t at : {1U, 2U, 3U}) {
                const std::string end = at == 1 ? "" : fmt::format("_{}", at);
                all["HOLDFAST_LOCK" + end] = at == place ? "a" : others;
                all["HOLDFAST_LEASE" + end] = at == place ? mine.text("/lease") : stranger;
            }
            const std::string what = fmt::format("{} of 3, others of {}", place, others);
            const auto renewed = box.run({"renew", "a", "--json"}, all);
            EXPECT_EQ(renewed.status, 0) << what << renewed.out;
            EXPECT_GT(renewed.json().number("/expires_in_ms"), 50 * 60'000) << "for as long as it was taken";
            EXPECT_EQ(box.run({"acquire", "a", "--json"}, all).json().text("/lock_id"), mine.text("/lock_id")) << what;
            EXPECT_EQ(box.run({"renew", "c", "--json"}, all).code(), "E_LOCK_NOT_HELD") << what;
            EXPECT_EQ(box.run({"release", "a"}, all).status, 0) << what;
            EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free") << what;
        }
}

TEST_F(Said, ALeaseInTheEnvironmentThatIsNotCurrentIsIgnoredWithAWord) {
    const Environment stale{{"HOLDFAST_LOCK", "a"},
                            {"HOLDFAST_LEASE", "00000000-0000-4000-8000-000000000000." + std::string(32, '0')}};
    const std::string word = "holdfast: a lease of a in the environment is not current and is ignored: ";
    EXPECT_THAT(box.run({"run", "a", "--", "true"}, stale).err, HasSubstr(word));
    EXPECT_EQ(box.run({"run", "a", "-q", "--", "true"}, stale).err, "");
    EXPECT_EQ(box.run({"acquire", "b"}, stale).err, "") << "it is about another lock";
    const auto granted = box.run({"acquire", "a", "--ttl", "1h"}, stale);
    EXPECT_EQ(granted.status, 0);
    EXPECT_THAT(granted.err, StartsWith(word));
    const auto conflict = box.run({"acquire", "a"}, stale);
    EXPECT_EQ(conflict.status, 75);
    EXPECT_THAT(conflict.err, AllOf(HasSubstr(word), HasSubstr("E_LOCK_CONFLICT")));
}

TEST_F(Said, WhatIsExcludedIsExcludedForEveryCommandThatAsks) {
    const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    ASSERT_EQ(box.run({"acquire", "other", "--ttl", "1h", "--holder", "them"}).status, 0);
    for (const Args& args : {Args{"acquire", "b"}, Args{"hold", "b", "--for", "1h", "-m", "x"},
                             Args{"check", "a", "--token", mine.text("/token")}, Args{"run", "b", "--", "true"}}) {
        Args excluded = args;
        excluded.insert(std::ranges::find(excluded, "--"), {"--unless-held", "none", "--unless-held", "other"});
        excluded.insert(excluded.begin(), "--json");
        const auto refused = box.run(excluded);
        EXPECT_EQ(refused.code(), "E_LOCK_CONFLICT") << args[0];
        EXPECT_EQ(refused.json().text("/error/holder/name"), "other") << args[0];
    }
    EXPECT_EQ(box.run({"check", "a", "--token", mine.text("/token"), "--unless-held", "none"}).status, 0);
}

TEST_F(Said, AReleaseOfNothingSaysSo) {
    const std::string stranger = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    const auto nothing = box.run({"release", "a", "--if-held", "--lease", stranger, "--json"}).json();
    EXPECT_EQ(nothing.text("/released"), "false");
    EXPECT_EQ(nothing.text("/name"), "a");
    EXPECT_EQ(box.run({"release", "a", "--if-held", "--lease", stranger}).out, "a was not held by this lease\n");
    const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    EXPECT_EQ(box.run({"release", "a", "--lease", mine.text("/lease"), "--json"}).json().text("/released"), "true");
}

// An earlier asker was denied. This one was not, and takes the lock that was given back.
TEST_F(Said, AnotherAskersDenialIsNotTakenForOnesOwn) {
    const auto mine = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    ASSERT_EQ(box.run({"override", "request", "a", "-q"}).status, 0);
    ASSERT_EQ(box.run({"override", "deny", "a", "-m", "never"}).status, 0);
    box.write(box.work / "holdfast.toml", "[[policy]]\nmatch = \"a\"\nunless_held = [\"other\"]\n");
    for (const bool excluded : {true, false}) {
        const auto holder = excluded ? mine : box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
        const auto other = box.run({"acquire", "other", "--ttl", "1h", "--json"}).json();
        auto asker = box.start({"override", "request", "a", "--wait", "1m", "--json"});
        ASSERT_TRUE(eventually([&] { return box.run({"status", "a", "--json"}).json().has("/override"); }));
        if (!excluded) {
            ASSERT_EQ(box.run({"release", "other", "--lease", other.text("/lease")}).status, 0);
        }
        ASSERT_EQ(box.run({"release", "a", "--lease", holder.text("/lease")}).status, 0);
        const auto ended = asker.wait();
        EXPECT_EQ(ended.status, excluded ? 75 : 0) << ended.out;
        if (excluded) {
            EXPECT_EQ(ended.json().text("/error/holder/name"), "other") << ended.out;
            ASSERT_EQ(box.run({"release", "other", "--lease", other.text("/lease")}).status, 0);
        }
    }
}

TEST_F(Said, ABenchThatIsInterruptedEndsWithTheSignalsStatus) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        auto bench = box.start({"bench", "--time", "1h", "--clients", "2"});
        ASSERT_TRUE(eventually([&] { return bench.has_open(box.work / "locks.db"); }));
        bench.signal(number);
        const auto ended = bench.wait();
        EXPECT_EQ(ended.status, 128 + number);
        EXPECT_EQ(ended.out, "") << "half a measurement is none";
    }
    EXPECT_EQ(box.run({"status", "--json"}).json().size("/locks"), 0U) << "everything was given back";
}

TEST_F(Said, OnATerminalColoursAreThereUnlessSomebodyWantsNone) {
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    const std::string escape = "\x1b[33m";
    EXPECT_THAT(box.run_on_terminal({"status", "a"}, "", Sandbox::Screen::all).err, HasSubstr(escape + "held"));
    const auto table = box.run_on_terminal({"status"}, "", Sandbox::Screen::all).err;
    EXPECT_THAT(table, AllOf(StartsWith("NAME  STATE  EXPIRES"), HasSubstr(escape + "held"), Not(HasSubstr("\t"))));
    EXPECT_THAT(box.run_on_terminal({"status", "a", "--no-color"}, "", Sandbox::Screen::all).err,
                AllOf(HasSubstr("held"), Not(HasSubstr("\x1b"))));
    box.environment["NO_COLOR"] = "1";
    EXPECT_THAT(box.run_on_terminal({"status"}, "", Sandbox::Screen::all).err,
                AllOf(HasSubstr("held"), Not(HasSubstr("\x1b"))));
    EXPECT_THAT(box.run({"status", "a"}).out, Not(HasSubstr("\x1b"))) << "into a file";
}

// A question that nobody can see, or answer, is not asked.
TEST_F(Said, NobodyIsAskedWhereTheQuestionCannotBeSeen) {
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    const auto unseen = box.run_on_terminal({"unlock", "a", "--json"}, "y\n", Sandbox::Screen::nothing);
    EXPECT_EQ(unseen.status, 64) << unseen.err;
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "held");
}

TEST_F(Said, AnErrorDocumentThatCannotBeWrittenIsAFailureOfItsOwn) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << tests::not_here << "there is no /dev/full";
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    for (const char* redirection : {">/dev/full", ">&-"})
        for (const char* format : {"--json", "--format=sh", "--format=json"})
            for (const char* name : {"a", "../x"}) {
                const std::string script = fmt::format("exec \"$0\" acquire {} {} {}", name, format, redirection);
                EXPECT_EQ(box.run_program({"/bin/sh", "-c", script, box.program}).status, 125) << script;
            }
}

}  // namespace
}  // namespace holdfast::cli_test
