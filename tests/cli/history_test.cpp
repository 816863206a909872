// The audit log as people read it, and as they check it.
#include "sandbox.hpp"
#include "stores/sqlite_by_hand.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

class History : public testing::Test {
protected:
    void renew(const std::string& name, const Document& grant, int times) {
        for (int i = 0; i < times; ++i)
            ASSERT_EQ(box.run({"renew", name, "-q"}, {{"HOLDFAST_LEASE", grant.text("/lease")}}).status, 0);
    }
    Document acquire(const std::string& name) { return box.run({"acquire", name, "--ttl", "1h", "--json"}).json(); }

    Sandbox box;
};

TEST_F(History, TheRenewalsOfALeaseShareALine) {
    const auto first = acquire("a");
    renew("a", first, 3);
    ASSERT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", first.text("/lease")}}).status, 0);
    const auto second = acquire("a");
    renew("a", second, 1);
    const std::string text = box.run({"history", "a"}).out;
    EXPECT_EQ(lines(text), 5) << text;
    EXPECT_THAT(text, HasSubstr("  a  2-4  renewed 3 times, last at "));
    EXPECT_THAT(text, HasSubstr("  a  7  renewed  ")) << "a single one is told as it is";
    EXPECT_EQ(lines(box.run({"history", "a", "--all"}).out), 7);
    EXPECT_EQ(box.run({"history", "a", "--json"}).json().size("/events"), 7U);
}

TEST_F(History, RenewalsOfSeveralLocksAreFoldedLockByLock) {
    const auto a = acquire("a");
    const auto b = acquire("b");
    for (int i = 0; i < 2; ++i) {
        renew("a", a, 1);
        renew("b", b, 1);
    }
    const std::string text = box.run({"history"}).out;
    EXPECT_EQ(lines(text), 4) << text;
    EXPECT_THAT(text, HasSubstr("  a  2-3  renewed 2 times"));
    EXPECT_THAT(text, HasSubstr("  b  2-3  renewed 2 times"));
}

TEST_F(History, SaysWhenThereIsNothing) {
    const auto never = box.run({"history", "never"});
    EXPECT_EQ(never.status, 0);
    EXPECT_EQ(never.out, "");
    EXPECT_EQ(never.err, "no events of never\n");
    EXPECT_EQ(box.run({"history"}).err, "no events\n");
    EXPECT_EQ(box.run({"history", "-q"}).err, "");
    EXPECT_EQ(box.run({"history", "--json"}).json().size("/events"), 0U);
    acquire("a");
    EXPECT_EQ(box.run({"history", "b", "--since", "2h"}).err, "no events of b in the last 2 h\n");
    EXPECT_EQ(box.run({"history", "a", "--since", "2h"}).err, "");
}

/// Removes every lock, event and place in a queue, as an attacker might to cover traces. What the trigger forbids is
/// done without it, and the database looks untouched afterwards.
void empty_by_hand(const std::filesystem::path& work, const std::string& store) {
    if (store.starts_with("file:")) {
        for (const auto& lock : std::filesystem::directory_iterator(work / "locks" / "locks"))
            std::filesystem::remove_all(lock.path());
        return;
    }
    tests::ByHand database(work / "locks.db");
    const auto trigger = database.column("SELECT sql FROM sqlite_schema WHERE name = 'holdfast_locks_stay'");
    ASSERT_EQ(trigger.size(), 1U);
    ASSERT_EQ(database.execute("BEGIN; DROP TRIGGER holdfast_locks_stay; DELETE FROM holdfast_locks; "
                               "DELETE FROM holdfast_audit; DELETE FROM holdfast_queue; " +
                               trigger.front() + "; COMMIT"),
              SQLITE_OK);
}

class Verification : public testing::TestWithParam<std::string> {
protected:
    Verification() { box.environment["HOLDFAST_STORE"] = GetParam(); }
    Sandbox box;
};

TEST_P(Verification, OfAStoreThatNobodyUsedIsGood) {
    EXPECT_EQ(box.run({"history", "--verify"}).status, 0) << "there is no store yet";
    ASSERT_EQ(box.run({"init"}).status, 0);
    // Nobody gets a lock by these.
    EXPECT_NE(box.run({"check", "a"}, {{"HOLDFAST_LEASE", LockId::random().text()}}).status, 0);
    EXPECT_EQ(box.run({"prune", "--keep", "0", "-q"}).status, 0);
    EXPECT_EQ(box.run({"history", "--verify"}).out, "0 events of 0 locks are intact\n");
    EXPECT_EQ(box.run({"history", "a", "--verify"}).status, 0);
}

TEST_P(Verification, OfALockThatNobodyUsedSaysSo) {
    ASSERT_EQ(box.run({"run", "a", "-q", "--", "true"}).status, 0);
    const auto unknown = box.run({"history", "prod/tpyo", "--verify"});
    EXPECT_EQ(unknown.status, 0) << unknown.err;
    EXPECT_EQ(unknown.out, "prod/tpyo was never used: 0 events of 0 locks are intact\n");
    EXPECT_EQ(box.run({"history", "prod/tpyo", "--verify", "--json"}).json().number("/locks"), 0);
}

TEST_P(Verification, OfAStoreThatWasUsedAndThenEmptiedFindsThat) {
    ASSERT_EQ(box.run({"run", "a", "-q", "--", "true"}).status, 0);
    ASSERT_EQ(box.run({"history", "--verify"}).status, 0);
    empty_by_hand(box.work, GetParam());
    for (const Args& command : {Args{"history", "--verify"}, Args{"history", "a", "--verify"}}) {
        const auto verified = box.run(command);
        EXPECT_EQ(verified.status, 84);
        EXPECT_EQ(verified.out, "");
        EXPECT_THAT(verified.err, HasSubstr("the store knows that it was used, and has neither locks nor events"));
    }
}

TEST_P(Verification, IsOfEverythingOrRefused) {
    for (const char* name : {"a", "b"}) ASSERT_EQ(box.run({"run", name, "-q", "--", "true"}).status, 0);
    const std::string intact = "4 events of 2 locks are intact\n";
    ASSERT_EQ(box.run({"history", "--verify"}).out, intact);
    for (const Args& part : {Args{"--since", "1h"}, Args{"--limit", "1"}, Args{"--all"}, Args{"--follow"}}) {
        Args args{"history", "--verify"};
        args.insert(args.end(), part.begin(), part.end());
        args.emplace_back("--json");
        const auto refused = box.run(args);
        EXPECT_EQ(refused.status, 64) << part[0];
        EXPECT_EQ(refused.code(), "E_USAGE") << part[0];
        EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("so " + part[0] + " does not go with it"));
    }
    // A variable was not meant for this call: it is passed over, and everything is checked.
    for (const Environment& part : {Environment{{"HOLDFAST_SINCE", "1ms"}}, Environment{{"HOLDFAST_LIMIT", "1"}},
                                    Environment{{"HOLDFAST_ALL", "on"}}, Environment{{"HOLDFAST_FOLLOW", "on"}}})
        EXPECT_EQ(box.run({"history", "--verify"}, part).out, intact) << part.begin()->first;
    EXPECT_EQ(box.run({"history", "a", "--verify"}).out, "2 events of 1 locks are intact\n");
    const auto document = box.run({"history", "--verify", "--json"}).json();
    EXPECT_EQ(document.number("/verified"), 4);
    EXPECT_EQ(document.number("/locks"), 2);
}

// The mark comes with the first lock of a store, and the ones after it need no other.
TEST_P(Verification, OfAStoreThatWasEmptiedIsAboutTheLocksThatCameAfterwards) {
    ASSERT_EQ(box.run({"run", "a", "-q", "--", "true"}).status, 0);
    empty_by_hand(box.work, GetParam());
    ASSERT_EQ(box.run({"run", "b", "-q", "--", "true"}).status, 0);
    EXPECT_EQ(box.run({"history", "--verify"}).out, "2 events of 1 locks are intact\n");
    empty_by_hand(box.work, GetParam());
    EXPECT_EQ(box.run({"history", "--verify"}).status, 84);
}

TEST_P(Verification, WhileOthersUseTheLockRaisesNoAlarm) {
    auto busy = box.start_program({"/bin/sh", "-c",
                                   "for i in 1 2 3 4 5 6 7 8 9 10; do \"$0\" run a --wait 1m -q -- true || exit 1; "
                                   "\"$0\" prune --keep 0 -q || exit 1; done",
                                   box.program});
    auto second = box.start_program(
        {"/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do \"$0\" run a --wait 1m -q -- true || exit 1; done",
         box.program});
    for (int i = 0; i < 20; ++i) {
        const auto verified = box.run({"history", "--verify"});
        EXPECT_EQ(verified.status, 0) << verified.err;
    }
    EXPECT_EQ(busy.wait().status, 0);
    EXPECT_EQ(second.wait().status, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, Verification, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

// A suggested command works as it stands: it names the store and the configuration that were named.
TEST(Hints, RepeatWhatTheCommandLineNamed) {
    Sandbox box;
    box.write(box.work / "my conf.toml", "");
    const Args where{"-s", "sqlite:my locks.db", "--config", "my conf.toml"};
    const auto with = [&](Args args) {
        args.insert(args.begin() + 1, where.begin(), where.end());
        return box.run(args);
    };
    const std::string flags = " a -s 'sqlite:my locks.db' --config 'my conf.toml'";
    EXPECT_THAT(with({"acquire", "a", "--ttl", "1h"}).out,
                testing::AllOf(HasSubstr("holdfast renew" + flags), HasSubstr("holdfast release" + flags)));
    EXPECT_THAT(with({"acquire", "a"}).err, HasSubstr("holdfast status" + flags));
    EXPECT_THAT(with({"acquire", "a", "--json"}).json().text("/error/hint"), HasSubstr("holdfast status" + flags));
    EXPECT_THAT(with({"run", "a", "--json", "--", "true"}).json().text("/error/hint"),
                HasSubstr("holdfast status" + flags));
    EXPECT_THAT(with({"unlock", "b", "--yes"}).err, HasSubstr("holdfast history b -s 'sqlite:my locks.db'"));
    ASSERT_EQ(with({"override", "request", "a"}).status, 0);
    EXPECT_THAT(with({"override", "request", "a"}).err, HasSubstr("override list -s 'sqlite:my locks.db'"));
}

TEST(Hints, DoNotRepeatWhatIsFoundAnyway) {
    Sandbox box;
    const Environment store{{"HOLDFAST_STORE", "sqlite:x.db"}};
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}, store).status, 0);
    const auto refused = box.run({"acquire", "a"}, store);
    EXPECT_THAT(refused.err, HasSubstr("holdfast status a\n"));
}

TEST(Hints, ShowNoUrlThatMayHoldASecret) {
    Sandbox box;
    for (const char* url : {"postgres://u:hunter2@127.0.0.1:1/db", "postgres://127.0.0.1:1/db?password=hunter2"}) {
        const auto refused = box.run({"acquire", "a", "-s", url});
        EXPECT_NE(refused.status, 0);
        EXPECT_THAT(refused.err, Not(HasSubstr("hunter2"))) << refused.err;
        EXPECT_THAT(refused.err, Not(HasSubstr(" -s "))) << refused.err;
    }
}

}  // namespace
}  // namespace holdfast::cli_test
