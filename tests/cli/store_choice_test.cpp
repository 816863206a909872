// Which store a command uses: never another one than its caller means, and none that guards nothing.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StoreChoice : public testing::Test {
protected:
    void expect_refused(const Ended& ended, const std::string& code, const std::string& text) {
        EXPECT_EQ(ended.status, code == "E_USAGE" ? 64 : 78) << ended.out;
        EXPECT_THAT(ended.err, AllOf(HasSubstr("holdfast: " + code + ": "), HasSubstr(text)));
    }

    std::string lease_of(const std::string& name, const Args& more = {}) {
        Args args{"acquire", name, "-q", "--ttl", "1h"};
        args.insert(args.end(), more.begin(), more.end());
        std::string lease = box.run(args).out;
        lease.pop_back();
        return lease;
    }

    Sandbox box;
};

TEST_F(StoreChoice, AFileWithTheStoreCountsMoreThanTheConfigurationAndLessThanTheVariable) {
    box.write(box.root / "secret", "sqlite:secret.db\n");
    box.write(box.work / "holdfast.toml", "store = \"sqlite:config.db\"\n");
    box.write(box.root / "named.toml", "store = \"sqlite:named.db\"\n");
    const auto made = [&](const Args& more, const Environment& environment) {
        Args args{"acquire", "a"};
        args.insert(args.end(), more.begin(), more.end());
        EXPECT_EQ(box.run(args, environment).status, 0);
        std::string name;
        for (const fs::path& folder : {box.work, box.root})
            for (const auto& entry : fs::directory_iterator(folder))
                if (entry.path().extension() == ".db") name = entry.path().filename();
        for (const fs::path& folder : {box.work, box.root})
            for (const std::string end : {"", "-wal", "-shm", "-gate"}) fs::remove(folder / (name + end));
        return name;
    };
    const Environment file{{"HOLDFAST_STORE_FILE", "../secret"}};
    EXPECT_EQ(made({}, {}), "config.db");
    EXPECT_EQ(made({}, file), "secret.db");
    EXPECT_EQ(made({"--config", "../named.toml"}, {}), "named.db");
    EXPECT_EQ(made({"--config", "../named.toml"}, file), "secret.db");
    EXPECT_EQ(made({}, {{"HOLDFAST_STORE_FILE", "../secret"}, {"HOLDFAST_STORE", "sqlite:variable.db"}}),
              "variable.db");
    EXPECT_EQ(made({"--store", "sqlite:flag.db"}, file), "flag.db");
}

TEST_F(StoreChoice, AVariableWithNamesHasOneOnEachLine) {
    ASSERT_EQ(box.run({"acquire", "b", "--ttl", "1h"}).status, 0);
    EXPECT_EQ(box.run({"acquire", "a"}, {{"HOLDFAST_UNLESS_HELD", "c\nb\n"}}).status, 75);
    expect_refused(box.run({"acquire", "a"}, {{"HOLDFAST_UNLESS_HELD", "c,b"}}), "E_USAGE", "one on each line");
    EXPECT_EQ(box.run({"run", "a", "--", "true"}, {{"HOLDFAST_AND", "c\nb"}}).status, 75);
    expect_refused(box.run({"run", "a", "--", "true"}, {{"HOLDFAST_AND", "c,d"}}), "E_USAGE", "--and");
    // A flag has one name, and a name may have a comma.
    EXPECT_EQ(box.run({"acquire", "a", "--unless-held", "c,b"}, {{"HOLDFAST_UNLESS_HELD", "x,y"}}).status, 0);
}

TEST_F(StoreChoice, AListInTheConfigurationIsWrittenAsAList) {
    for (const std::string text : {"unless_held = \"a,b\"\n", "[[policy]]\nmatch = \"*\"\nunless_held = \"a,b\"\n"}) {
        box.write(box.work / "holdfast.toml", text);
        expect_refused(box.run({"acquire", "c"}), "E_CONFIG", "[\"a\", \"b\"]");
    }
    box.write(box.work / "holdfast.toml", "unless_held = [\"a,b\"]\n");
    EXPECT_EQ(box.run({"acquire", "c"}).status, 0);
}

TEST_F(StoreChoice, TheVariableMayNameSeveralStores) {
    const Environment two{{"HOLDFAST_STORE", " sqlite:one.db\n\tfile:two "}};
    EXPECT_EQ(box.run({"run", "a", "--", "true"}, two).status, 0);
    EXPECT_TRUE(fs::exists(box.work / "one.db") && fs::exists(box.work / "two"));
    EXPECT_EQ(box.run({"acquire", "a"}, two).status, 64);

    for (const std::string text : {"sqlite:my locks.db", "sqlite:a redis://:hunter2 b@h/0", "sqlite:a nonsense:b"}) {
        const auto refused = box.run({"run", "a", "--", "true"}, {{"HOLDFAST_STORE", text}});
        expect_refused(refused, "E_CONFIG", "%20");
        EXPECT_THAT(refused.err, Not(HasSubstr("hunter2")));
    }
    expect_refused(box.run({"status"}, {{"HOLDFAST_STORE", " \n"}}), "E_CONFIG", "HOLDFAST_STORE");
    box.write(box.root / "secret", "sqlite:one.db\nsomething");
    expect_refused(box.run({"status"}, {{"HOLDFAST_STORE_FILE", "../secret"}}), "E_CONFIG", "%20");
}

TEST_F(StoreChoice, AChildFindsAStoreWithWhiteSpaceInItsPathAndSeveralStores) {
    const auto inside = box.run(
        {"run", "a", "-s", "sqlite:my locks.db", "--", "sh", "-c", "cd / && '" + box.program + "' status a --json"});
    EXPECT_EQ(inside.json().text("/state"), "held") << inside.err;
    const auto both = box.run({"run", "a", "-s", "sqlite:one.db", "-s", "file:two", "--", "sh", "-c",
                               "cd / && '" + box.program + "' run b -- true && echo \"$HOLDFAST_STORE\""});
    EXPECT_THAT(both.out,
                HasSubstr("sqlite:" + (box.work / "one.db").string() + " file:" + (box.work / "two").string()))
        << both.err;
}

TEST_F(StoreChoice, MemoryGuardsNothingAndIsRefusedButForBench) {
    for (const Args& args : std::vector<Args>{{"acquire", "a"},
                                              {"run", "a", "--", "true"},
                                              {"hold", "a", "--for", "1h", "-m", "x"},
                                              {"status"},
                                              {"doctor"},
                                              {"init"},
                                              {"history"}}) {
        expect_refused(box.run(args, {{"HOLDFAST_STORE", "memory:"}}), "E_CONFIG", "memory:");
        box.write(box.work / "holdfast.toml", "store = [\"memory:\"]\n");
        expect_refused(box.run(args), "E_CONFIG", "memory:");
        fs::remove(box.work / "holdfast.toml");
    }
    EXPECT_EQ(box.run({"bench", "-s", "memory:", "--time", "10ms", "--clients", "1"}).status, 0);
}

TEST_F(StoreChoice, ALeaseThatIsHandedOverIsNotBoundToASession) {
    for (const Args& args : std::vector<Args>{{"acquire", "a"}, {"hold", "a", "--for", "1h", "-m", "x"}}) {
        Args by_flag = args;
        by_flag.emplace_back("--session");
        expect_refused(box.run(by_flag), "E_USAGE", "--session");
        // Refused before anybody is asked: no server is there.
        expect_refused(box.run(args, {{"HOLDFAST_STORE", "postgres://127.0.0.1:1/db?session=on"}}), "E_USAGE",
                       "session=on");
    }
}

TEST_F(StoreChoice, TwoSlashesAreRefusedWithTheRightSpelling) {
    for (const std::string scheme : {"sqlite", "file"}) {
        expect_refused(box.run({"acquire", "a", "-s", scheme + "://var/x"}), "E_USAGE", scheme + ":///var/x");
        expect_refused(box.run({"acquire", "a", "-s", scheme + "://"}), "E_USAGE", scheme + ":///");
    }
    EXPECT_FALSE(fs::exists(box.work / "var"));
}

TEST_F(StoreChoice, TheDefaultStoreIsNeverInTheWorkingFolder) {
    const auto before = box.files();
    for (const std::string home : {"", "home", "./home", ".."})
        expect_refused(box.run({"acquire", "a"}, {{"HOME", home}, {"XDG_STATE_HOME", ""}}), "E_CONFIG", "HOME");
    expect_refused(box.run({"acquire", "a"}, {{"HOME", "home"}, {"XDG_STATE_HOME", "state"}}), "E_CONFIG", "HOME");
    EXPECT_EQ(box.files(), before);
    const auto root = box.run({"status", "-v"}, {{"HOME", "/"}, {"XDG_STATE_HOME", ""}});
    EXPECT_THAT(root.err, HasSubstr("sqlite:/.local/state/holdfast/holdfast.db"));
    // Two slashes at the beginning are one.
    ASSERT_EQ(box.run({"acquire", "a"}, {{"XDG_STATE_HOME", "/" + box.state.string()}}).status, 0);
    EXPECT_TRUE(fs::exists(box.state / "holdfast" / "holdfast.db"));
}

TEST_F(StoreChoice, InsideALockNoCommandFallsBackToTheDefaultStore) {
    box.write(box.root / "elsewhere" / "holdfast.toml", "store = \"sqlite:locks.db\"\n");
    const std::string lease = lease_of("a", {"--config", "../elsewhere/holdfast.toml"});
    const Environment leased{{"HOLDFAST_LEASE", lease}, {"HOLDFAST_LOCK", "a"}};
    for (const Args& args : std::vector<Args>{{"acquire", "b"},
                                              {"run", "b", "--", "true"},
                                              {"hold", "b", "--for", "1h", "-m", "x"},
                                              {"check", "a", "--token", "1"},
                                              {"status"},
                                              {"history"},
                                              {"unlock", "a", "--yes"},
                                              {"override", "request", "a"},
                                              {"prune"},
                                              {"doctor"},
                                              {"init"},
                                              {"release", "a", "--if-held"}})
        expect_refused(box.run(args, leased), "E_CONFIG", "HOLDFAST_STORE");
    EXPECT_FALSE(fs::exists(box.state));
    EXPECT_EQ(box.run({"acquire", "b", "-s", "sqlite:named.db"}, leased).status, 0);
    // These present the lease, and a store that does not know it refuses.
    for (const std::string command : {"renew", "release"}) EXPECT_EQ(box.run({command, "a"}, leased).status, 79);
}

TEST_F(StoreChoice, InsideRunAStoreThatIsNotPassedOnIsNotReplacedByTheDefault) {
    // The @ could stand behind a password.
    const std::string inside = "'" + box.program + "' ";
    for (const std::string command : {"status", "run b -- true", "renew a", "release a"}) {
        const auto ended = box.run({"run", "a", "-s", "sqlite:l@cks.db", "--", "sh", "-c", inside + command});
        EXPECT_EQ(ended.status, 78) << command;
        EXPECT_THAT(ended.err, HasSubstr("HOLDFAST_STORE")) << command;
    }
    EXPECT_FALSE(fs::exists(box.state));
}

TEST_F(StoreChoice, InsideRunAStoreThatIsNotPassedOnIsNotReplacedByThatOfTheEnvironment) {
    const auto ended =
        box.run({"run", "a", "-s", "sqlite:l@cks.db", "--", "sh", "-c", "'" + box.program + "' acquire b"},
                {{"HOLDFAST_STORE", "sqlite:other.db"}});
    EXPECT_EQ(ended.status, 78) << ended.err;
    EXPECT_FALSE(fs::exists(box.work / "other.db"));
}

TEST_F(StoreChoice, ALeaseOfTheDefaultStoreIsFoundThere) {
    const std::string program = "'" + box.program + "'";
    const auto ended = box.run_program({"/bin/sh", "-c",
                                        "lease=$(" + program + " acquire a --format sh) || exit; eval \"$lease\"; " +
                                            program + " check a --token $HOLDFAST_TOKEN && " + program +
                                            " run b -q -- true && " + program + " release a"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    // It says nothing of another lease.
    const std::string other = lease_of("c", {"-s", "sqlite:other.db"});
    expect_refused(box.run({"status"}, {{"HOLDFAST_LEASE", other},
                                        {"HOLDFAST_IN_DEFAULT_STORE", "00000000-0000-4000-8000-000000000000"}}),
                   "E_CONFIG", "HOLDFAST_STORE");
}

}  // namespace
}  // namespace holdfast::cli_test
