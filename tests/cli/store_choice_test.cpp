// Which store a command uses: never another one than its caller means, and none that guards nothing.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

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
                                              {"override", "approve", "a"},
                                              {"override", "deny", "a"},
                                              {"release", "a", "--if-held"}})
        expect_refused(box.run(args, leased), "E_CONFIG", "HOLDFAST_STORE");
    EXPECT_FALSE(fs::exists(box.state));
    EXPECT_EQ(box.run({"acquire", "b", "-s", "sqlite:named.db"}, leased).status, 0);
    // These present the lease, and a store that does not know it refuses. They say which store that is.
    for (const std::string command : {"renew", "release"}) {
        const auto ended = box.run({command, "a"}, leased);
        EXPECT_EQ(ended.status, 79);
        EXPECT_THAT(ended.err, HasSubstr("built-in default store")) << command;
    }
}

TEST_F(StoreChoice, ALeaseElsewhereAnswersNoQuestionInTheDefaultStore) {
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    ASSERT_EQ(box.run({"override", "request", "a", "--ttl", "1h"}).status, 0);
    const Environment leased{{"HOLDFAST_LEASE", lease_of("a", {"-s", "sqlite:other.db"})}, {"HOLDFAST_LOCK", "a"}};
    for (const std::string answer : {"approve", "deny"})
        expect_refused(box.run({"override", answer, "a"}, leased), "E_CONFIG", "HOLDFAST_STORE");
    EXPECT_TRUE(box.run({"status", "a", "--json"}).json().has("/override"));
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

TEST_F(StoreChoice, InsideRunAStoreThatIsNotPassedOnIsNotReplacedByThatOfAFile) {
    box.write(box.root / "secret", "sqlite:other.db\n");
    const auto ended =
        box.run({"run", "a", "-s", "sqlite:l@cks.db", "--", "sh", "-c", "'" + box.program + "' acquire b"},
                {{"HOLDFAST_STORE_FILE", "../secret"}});
    EXPECT_EQ(ended.status, 78) << ended.err;
    EXPECT_FALSE(fs::exists(box.work / "other.db"));
}

TEST_F(StoreChoice, InsideRunAStoreThatIsNotPassedOnIsNotReplacedByThatOfAConfiguration) {
    box.write(box.work / "holdfast.toml", "store = \"sqlite:other.db\"\n");
    const std::string inside = "'" + box.program + "' acquire b";
    for (const Args& guard : {Args{}, Args{"--no-lock"}}) {
        Args args{"run", "a", "-s", "sqlite:l@cks.db"};
        args.insert(args.end(), guard.begin(), guard.end());
        args.insert(args.end(), {"--", "sh", "-c", inside});
        const auto ended = box.run(args);
        EXPECT_EQ(ended.status, 78) << ended.err;
        EXPECT_THAT(ended.err, HasSubstr("HOLDFAST_STORE"));
    }
    EXPECT_FALSE(fs::exists(box.work / "other.db"));
    // A store that is named inside counts, and is passed on in its turn.
    const auto named = box.run({"run", "a", "-s", "sqlite:l@cks.db", "--", "sh", "-c",
                                "'" + box.program + "' run b -s sqlite:third.db -- " + inside});
    EXPECT_EQ(named.status, 0) << named.err;
    EXPECT_TRUE(fs::exists(box.work / "third.db"));
}

TEST_F(StoreChoice, InsideRunAConfigurationWithASecretIsFoundAgainAndNoOtherOne) {
    box.write(box.work / "holdfast.toml", "store = \"sqlite:l@cks.db\"\n");
    box.write(box.work / "sub" / "holdfast.toml", "store = \"sqlite:other.db\"\n");
    const std::string program = "'" + box.program + "'";
    const auto same = box.run({"run", "a", "--", "sh", "-c", program + " status a --json"});
    EXPECT_EQ(same.json().text("/state"), "held") << same.err;
    // Whichever way it is spelt.
    const std::string nested = program + " status a --json --config sub/../holdfast.toml";
    const auto named = box.run({"run", "a", "--config", "./holdfast.toml", "--", "sh", "-c", nested});
    EXPECT_EQ(named.json().text("/state"), "held") << named.err;
    const auto other = box.run({"run", "a", "--", "sh", "-c", "cd sub; " + program + " run a -- true"});
    EXPECT_EQ(other.status, 78) << other.err;
    EXPECT_FALSE(fs::exists(box.work / "sub" / "other.db"));
}

TEST_F(StoreChoice, InsideRunARelativeStoreStaysWhereItIs) {
    fs::create_directories(box.work / "sub");
    box.write(box.work / "secret", "sqlite:file@1.db\n");
    const std::string nested = "cd sub; '" + box.program + "' run a -- true";
    // The @ could stand behind a password, which a variable may have.
    const auto variable =
        box.run({"run", "a", "--json", "--", "sh", "-c", nested}, {{"HOLDFAST_STORE", "sqlite:l@cks.db"}});
    EXPECT_EQ(variable.status, 0) << variable.err;
    EXPECT_TRUE(fs::is_empty(box.work / "sub"));
    const auto file = box.run({"run", "a", "--", "sh", "-c", nested}, {{"HOLDFAST_STORE_FILE", "secret"}});
    EXPECT_EQ(file.status, 78) << file.err;
    EXPECT_TRUE(fs::is_empty(box.work / "sub"));
    box.write(box.work / "absolute", "sqlite:" + (box.work / "file@1.db").string() + "\n");
    const auto absolute = box.run({"run", "a", "--", "sh", "-c", nested}, {{"HOLDFAST_STORE_FILE", "absolute"}});
    EXPECT_EQ(absolute.status, 0) << absolute.err;
}

TEST_F(StoreChoice, AnAbsolutePathWithAnEscapedSlashIsAbsolute) {
    const auto path = box.root / "absolute.db";
    std::string escaped = path.string();
    escaped.replace(0, 1, "%2f");
    const auto ended = box.run(
        {"run", "a", "-s", "sqlite:" + escaped, "--", "sh", "-c", "cd /; '" + box.program + "' status a --json"});
    EXPECT_EQ(ended.json().text("/state"), "held") << ended.err;
    EXPECT_TRUE(fs::exists(path));
}

TEST_F(StoreChoice, TwoStoresInOneTextAreRefused) {
    const auto before = box.files();
    for (const std::string text : {"sqlite:a.db,sqlite:b.db", "sqlite:a.db, file:b", "file:b ,redis://h/0"})
        expect_refused(box.run({"acquire", "a"}, {{"HOLDFAST_STORE", text}}), "E_CONFIG", "HOLDFAST_STORE");
    for (const std::string text : {"sqlite:a.db,sqlite:b.db", "sqlite:a.db sqlite:b.db", "file:b\tsqlite:c"}) {
        expect_refused(box.run({"acquire", "a", "-s", text}), "E_CONFIG", "--store");
        box.write(box.work / "holdfast.toml", "store = \"" + text + "\"\n");
        expect_refused(box.run({"acquire", "a"}), "E_CONFIG", "holdfast.toml:1");
        fs::remove(box.work / "holdfast.toml");
    }
    EXPECT_EQ(box.files(), before);
    // Servers of one cluster, and a comma in the name of a file.
    EXPECT_EQ(box.run({"status"}, {{"HOLDFAST_STORE", "etcd://127.0.0.1:1,127.0.0.1:1"}}).status, 69);
    EXPECT_EQ(box.run({"acquire", "a", "-s", "sqlite:a,b.db"}).status, 0);
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

class LeaseOnSeveralStores : public StoreChoice {
protected:
    /// Runs a shell script under the lock x on two stores.
    Ended inside(const std::string& script) {
        box.environment["HF"] = box.program;
        return box.run(
            {"run", "x", "-q", "-s", "sqlite:one.db", "-s", "file:two", "--ttl", "1m", "--", "sh", "-c", script});
    }
    static std::size_t count(const std::string& text, const std::string& line) {
        std::size_t found = 0;
        for (auto at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) ++found;
        return found;
    }
    std::string state_in(const std::string& store) {
        return box.run({"status", "x", "-s", store, "--json"}).json().text("/state");
    }
};

TEST_F(LeaseOnSeveralStores, IsCheckedOnEachOfThem) {
    const auto current = inside("$HF check x && $HF check x --json");
    EXPECT_EQ(current.status, 0) << current.err;
    const auto json_at = current.out.find('{');
    EXPECT_EQ(count(current.out, " of x is the current one\n"), 2U) << current.out;
    const auto document = Document::parse(current.out.substr(json_at));
    ASSERT_TRUE(document);
    EXPECT_TRUE(document->yes("/current"));
    EXPECT_EQ(document->size("/locks"), 2U);
    EXPECT_NE(document->text("/locks/0/store_id"), document->text("/locks/1/store_id"));
    for (const std::string broken : {"sqlite:one.db", "file:two"}) {
        const auto stale = inside("$HF unlock x -q --yes -s " + broken + " && $HF check x; echo status $?");
        EXPECT_EQ(stale.out, "status 80\n") << broken << stale.err;
    }
}

TEST_F(LeaseOnSeveralStores, IsRenewedAndReleasedOnEachOfThem) {
    const auto renewed = inside(
        "$HF renew x --ttl 1h -q && $HF status x -s sqlite:one.db --json && echo && "
        "$HF status x -s file:two --json");
    EXPECT_EQ(renewed.status, 0) << renewed.err;
    std::istringstream lines(renewed.out);
    int long_ones = 0;
    for (std::string line; std::getline(lines, line);)
        if (const auto lock = line.empty() ? std::nullopt : Document::parse(line); lock)
            long_ones += lock->number("/expires_in_ms") > 120'000 ? 1 : 0;
    EXPECT_EQ(long_ones, 2) << renewed.out;

    const auto released = inside("$HF release x --json");
    EXPECT_EQ(released.json().size("/locks"), 2U) << released.err;
    EXPECT_TRUE(released.json().yes("/released"));
    EXPECT_EQ(state_in("sqlite:one.db"), "free");
    EXPECT_EQ(state_in("file:two"), "free");
}

TEST_F(LeaseOnSeveralStores, IsReleasedWhereItIsHeldWhateverTheOtherSays) {
    const auto ended = inside(
        "$HF unlock x -q --yes -s sqlite:one.db; $HF release x -q; echo status $?; "
        "$HF status x -s file:two --json");
    EXPECT_THAT(ended.out, testing::StartsWith("status 79\n")) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("\"state\":\"free\""));
}

TEST_F(LeaseOnSeveralStores, IsRefusedForTheReasonOfTheFirstStoreThatRefuses) {
    const auto ended = inside(
        "$HF unlock x -q --yes -s sqlite:one.db; for f in $(find two -name record); do echo x >$f; done; "
        "$HF release x -q -s file:two 2>/dev/null; echo status $?; $HF release x -q; echo status $?");
    EXPECT_EQ(ended.out, "status 84\nstatus 79\n") << ended.err;
}

TEST_F(LeaseOnSeveralStores, IsNotTransferredAndNeedsOneStoreWhereTheEnvironmentHasNone) {
    const auto moved = inside("$HF transfer x --to heir; echo status $?; $HF check y; echo status $?");
    EXPECT_EQ(moved.out, "status 64\nstatus 64\n") << moved.err;
    EXPECT_THAT(moved.err, HasSubstr("--store"));
    const auto one = inside("$HF check x -s file:two");
    EXPECT_EQ(count(one.out, " of x is the current one\n"), 1U) << one.err;
}

}  // namespace
}  // namespace holdfast::cli_test
