// Goal: with several locks or stores, the command knows all of its leases, commands inside find theirs, and the order
// in which locks are taken is that of the stores' ids. Method: the real program on file and SQLite stores, as their
// own processes see them.

#include "cli/sandbox.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using cli_test::Args;
using cli_test::Document;
using cli_test::Ended;
using cli_test::Environment;
using cli_test::eventually;
using testing::HasSubstr;
using testing::Not;

class SeveralStores : public testing::Test {
protected:
    SeveralStores() { box_.environment["PATH"] = std::string(HOLDFAST_BIN) + ":/usr/bin:/bin"; }

    [[nodiscard]] std::string url(const std::string& file) const { return "sqlite:" + (box_.work / file).string(); }
    /// Runs a shell script under what `flags` ask for.
    Ended run_script(Args flags, const std::string& script, const Environment& more = {}) {
        flags.insert(flags.begin(), "run");
        flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
        return box_.run(flags, more);
    }
    /// The value of a variable as the child sees it.
    static std::string value_of(const std::string& name, const std::string& environment) {
        std::istringstream lines(environment);
        for (std::string line; std::getline(lines, line);)
            if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
        return "(absent)";
    }
    static Document leases_in(const std::string& environment) {
        auto list = Document::parse(value_of("HOLDFAST_LEASES", environment));
        EXPECT_TRUE(list) << environment;
        return list ? *list : *Document::parse("[]");
    }
    static Deadline soon() { return Deadline::in(host_clock(), 10s); }

    cli_test::Sandbox box_;
};

TEST_F(SeveralStores, TheChildIsToldEveryLeaseWithItsStore) {
    const Args flags{"x", "--and", "a", "-s", url("2.db"), "-s", url("1.db")};
    const std::string out = run_script(flags, "env").out;
    const Document list = leases_in(out);
    ASSERT_EQ(list.size(""), 4U);
    EXPECT_EQ(list.text("/0/name"), "x");
    EXPECT_EQ(list.text("/1/name"), "x");
    EXPECT_EQ(list.text("/2/name"), "a");
    EXPECT_EQ(list.text("/0/store_id"), list.text("/2/store_id"));
    EXPECT_NE(list.text("/0/store_id"), list.text("/1/store_id"));
    EXPECT_EQ(list.text("/0/store_id"), box_.run({"init", "-s", url("2.db"), "--json"}).json().text("/store_id"));
    for (const std::string place : {"", "_2", "_3", "_4"}) {
        const std::string item = "/" + std::to_string(place.empty() ? 0 : place[1] - '1');
        EXPECT_EQ(value_of("HOLDFAST_LOCK" + place, out), list.text(item + "/name"));
        EXPECT_EQ(value_of("HOLDFAST_TOKEN" + place, out), list.text(item + "/token"));
        EXPECT_EQ(value_of("HOLDFAST_LEASE" + place, out), list.text(item + "/lease"));
        EXPECT_EQ(value_of("HOLDFAST_LOCK_ID" + place, out), list.text(item + "/lock_id"));
    }
    EXPECT_EQ(value_of("HOLDFAST_STORE", out), url("2.db") + " " + url("1.db"));
}

TEST_F(SeveralStores, TheDocumentOfRunHasEveryLeaseWithItsStore) {
    const Document list = run_script({"x", "--json", "-s", url("1.db"), "-s", url("2.db")}, "true").json();
    ASSERT_EQ(list.size("/locks"), 2U);
    EXPECT_EQ(list.text("/locks/1/store_id"), box_.run({"init", "-s", url("2.db"), "--json"}).json().text("/store_id"));
    EXPECT_EQ(list.text("/locks/1/joined"), "false");
    EXPECT_FALSE(list.contains("/locks/0/lease"));
}

TEST_F(SeveralStores, CommandsInsideFindTheLeaseOfTheirLock) {
    const Ended ended = run_script({"z", "--and", "a", "-s", url("1.db")},
                                   "set -e; holdfast check z; holdfast check a; holdfast renew a; holdfast renew z; "
                                   "holdfast release a; ! holdfast check a; holdfast check z");
    EXPECT_THAT(ended.out, HasSubstr("z is yours for")) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("a is released")) << ended.err;
}

TEST_F(SeveralStores, CommandsInsideFindTheLeaseOfTheirStore) {
    for (const char* command : {"check x", "renew x", "transfer x --to bob -q", "release x"}) {
        SCOPED_TRACE(command);
        std::string script = "set -e";
        for (const char* file : {"2.db", "1.db"}) script += "; holdfast " + (command + (" -s " + url(file)));
        const Ended ended =
            run_script({"x", "--ttl", "1h", "-s", url("1.db"), "-s", url("2.db")}, script + "; echo all");
        EXPECT_THAT(ended.out, HasSubstr("all\n")) << ended.err;
        for (const char* file : {"2.db", "1.db"})
            static_cast<void>(box_.run({"unlock", "x", "--yes", "-s", url(file)}));
    }
}

TEST_F(SeveralStores, ACommandInsideJoinsOnEachStore) {
    const std::string both = "-s " + url("2.db") + " -s " + url("1.db");
    const Ended ended = run_script(
        {"x", "-s", url("1.db"), "-s", url("2.db")},
        "holdfast run x --json " + both + " -- true && holdfast acquire x -q -s " + url("2.db") + " > /dev/null");
    ASSERT_EQ(ended.status, 0) << ended.err;
    const auto inner = Document::parse(ended.out);
    ASSERT_TRUE(inner) << ended.out;
    EXPECT_TRUE(inner->yes("/locks/0/joined"));
    EXPECT_TRUE(inner->yes("/locks/1/joined"));
    EXPECT_EQ(ended.err.find("ignored"), std::string::npos) << ended.err;
}

TEST_F(SeveralStores, TheSameNameOnAnotherStoreIsAnotherLock) {
    const Ended ended =
        run_script({"x", "-s", url("1.db")}, "holdfast run x --json -s " + url("2.db") + " -- env HOLDFAST_X=");
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("\"joined\":false"));
    EXPECT_THAT(ended.err, Not(HasSubstr("ignored")));
    EXPECT_EQ(leases_in(ended.out).size(""), 2U) << "the child is inside both";
}

TEST_F(SeveralStores, TheTokenOfAnotherLockIsNotCheckedForThisOne) {
    const Ended ended = run_script({"z", "-s", url("1.db")}, "holdfast check a --json");
    EXPECT_EQ(ended.status, 64);
    EXPECT_THAT(ended.out, HasSubstr("HOLDFAST_TOKEN is that of z"));
}

TEST_F(SeveralStores, NothingIsLeftOfVariablesThatAnOuterRunSet) {
    const Environment stale{{"HOLDFAST_LOCK_7", "of-before"},
                            {"HOLDFAST_TOKEN_7", "7"},
                            {"HOLDFAST_LOCK_ID", "of-before"},
                            {"HOLDFAST_EXPIRES_AT_2", "of-before"},
                            {"HOLDFAST_LEASES", "[]"}};
    const std::string out = run_script({"x", "-s", url("1.db")}, "env", stale).out;
    EXPECT_THAT(out, Not(HasSubstr("of-before")));
    EXPECT_THAT(out, Not(HasSubstr("_7=")));
    EXPECT_EQ(leases_in(out).size(""), 1U);
}

TEST_F(SeveralStores, ALeaseThatAShellTookLaterIsFoundBesideThoseOfTheRunAroundIt) {
    const Ended ended = run_script({"x", "-s", url("1.db")},
                                   "set -e; HOLDFAST_LEASE=$(holdfast acquire b -q); export HOLDFAST_LEASE; "
                                   "holdfast renew b; holdfast renew x; holdfast check x; holdfast release b; "
                                   "eval \"$(holdfast acquire c --format sh)\"; holdfast check c; holdfast check x");
    EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_F(SeveralStores, MalformedLeasesAreRefusedAndNotRepeated) {
    const std::string id = LockId::random().text();
    const std::string key(32, 'a');
    const std::string good =
        R"({"store_id":null,"name":"x","token":5,"lock_id":")" + id + R"(","lease":")" + id + "." + key + "\"}";
    for (const std::string& text :
         {std::string("{}"), "[" + good, "[" + good + ",null]", "[" + good + ",{}]",
          std::string("[") + R"({"name":"x","lock_id":"x","lease":")" + key + "\"}]", std::string(5000, '[')}) {
        SCOPED_TRACE(text.substr(0, 200));
        const Environment inside{{"HOLDFAST_LEASES", text}, {"HOLDFAST_STORE", url("1.db")}};
        for (const Args& args :
             {Args{"run", "x", "--", "touch", "started"}, Args{"run", "x", "--no-lock", "--", "touch", "started"},
              Args{"acquire", "x"}, Args{"check", "x"}, Args{"renew", "x"}, Args{"release", "x"}}) {
            const Ended ended = box_.run(args, inside);
            EXPECT_EQ(ended.status, 64) << args.front() << ended.err;
            EXPECT_THAT(ended.err, testing::AllOf(HasSubstr("HOLDFAST_LEASES"), Not(HasSubstr(key))));
        }
        EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
        EXPECT_FALSE(std::filesystem::exists(box_.work / "1.db"));
    }
    // What is named on the command line needs no list.
    const Ended renewed = box_.run({"renew", "x", "--lease", id + "." + key},
                                   {{"HOLDFAST_LEASES", "{}"}, {"HOLDFAST_STORE", url("1.db")}});
    EXPECT_EQ(renewed.status, 79) << renewed.err;
}

TEST_F(SeveralStores, TwoSpellingsOfOneStoreAndACopyAreRefused) {
    ASSERT_EQ(box_.run({"init", "-s", "sqlite:a.db"}).status, 0);
    std::filesystem::copy_file(box_.work / "a.db", box_.work / "copy.db");
    for (const char* other : {"sqlite:./a.db", "sqlite:copy.db"}) {
        const Ended ended = run_script({"x", "-s", "sqlite:a.db", "-s", other}, "touch started");
        EXPECT_EQ(ended.status, 78) << ended.err;
        EXPECT_THAT(ended.err, testing::AllOf(HasSubstr("E_CONFIG"), HasSubstr("two spellings"), HasSubstr("a copy")));
        EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
    }
    EXPECT_EQ(box_.run({"status", "x", "-s", "sqlite:a.db", "--json"}).json().text("/state"), "free");
}

// Its one lease would seem to be held in both.
TEST_F(SeveralStores, TwoSpellingsOfOneStoreAreRefusedInsideARunOfTheSameLock) {
    for (const char* inner : {"x", "a --and x"}) {
        const Ended ended =
            run_script({"x", "-s", url("a.db")},
                       "holdfast run " + std::string(inner) + " -s sqlite:a.db -s sqlite:./a.db -- touch started");
        EXPECT_EQ(ended.status, 78) << ended.err;
        EXPECT_THAT(ended.err, testing::AllOf(HasSubstr("E_CONFIG"), HasSubstr("two spellings")));
        EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
    }
}

// Two commands that spell the same two stores crosswise. Whichever comes first in the order is held by somebody else:
// both must wait there, and neither may hold the other store meanwhile.
TEST_F(SeveralStores, StoresAreTakenInOneOrderHoweverTheyAreSpelt) {
    for (const char* folder : {"p", "q"}) std::filesystem::create_directory(box_.work / folder);
    for (const auto& [name, target] : {std::pair{"a", "p"}, {"b", "q"}, {"c", "q"}, {"d", "p"}})
        std::filesystem::create_directory_symlink(box_.work / target, box_.work / name);
    const auto in_p = must(open_store(url("p/l.db")));
    const auto in_q = must(open_store(url("q/l.db")));
    must(in_p->apply({}, soon()));
    must(in_q->apply({}, soon()));
    const bool p_first = *in_p->info().store_id < *in_q->info().store_id;
    Store& first = p_first ? *in_p : *in_q;
    Store& second = p_first ? *in_q : *in_p;
    const Acquire other = by_bob(lock("x"), 60s);
    must(first.apply_one(other, soon()));

    const auto start = [&](const char* one, const char* two) {
        return box_.start({"run", "x", "--wait", "1m", "-s", url(std::string(one) + "/l.db"), "-s",
                           url(std::string(two) + "/l.db"), "--", "true"});
    };
    auto one = start("a", "b");
    auto two = start("c", "d");
    ASSERT_TRUE(eventually([&] { return must(first.inspect(lock("x"), soon())).waiters == 2; }));
    EXPECT_EQ(must(second.inspect(lock("x"), soon())).state, LockState::free) << "one of them took it the other way";
    must(first.apply_one(release(other), soon()));
    EXPECT_EQ(one.wait().status, 0);
    EXPECT_EQ(two.wait().status, 0);
}

TEST_F(SeveralStores, TheChildFindsTheStoreFromAnotherFolder) {
    const std::string script = "cd / && holdfast status x --json";
    for (const std::string store : {"sqlite:1.db", "sqlite:a b.db"}) {
        const Ended given = run_script({"x", "-s", store}, script);
        EXPECT_THAT(given.out, HasSubstr("\"state\":\"held\"")) << given.err;
    }
    EXPECT_THAT(run_script({"x"}, script, {{"HOLDFAST_STORE", "sqlite:1.db"}}).out, HasSubstr("\"state\":\"held\""));
}

TEST_F(SeveralStores, AStoreWithASecretIsNotGivenToTheChildAmongOthers) {
    // Without a lock, because nobody listens there.
    const Args flags{"x", "--no-lock", "-s", url("1.db"), "-s", "redis://:secret@127.0.0.1:1/0"};
    EXPECT_EQ(value_of("HOLDFAST_STORE", run_script(flags, "env").out), "(absent)");
}

}  // namespace
}  // namespace holdfast::tests
