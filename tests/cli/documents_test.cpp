// With --json every command prints exactly one document, whatever happens; and what is made from the
// table of commands leaves nothing of it out.
#include "cli/command.hpp"
#include "sandbox.hpp"
#include "support/isolation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;

TEST(Documents, EveryCommandPrintsExactlyOneOnSuccessAndOnFailure) {
    Sandbox box;
    const auto grant = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    const std::vector<Args> commands{
        {"acquire", "b"},
        {"acquire", "a"},
        {"renew", "a"},
        {"renew", "b"},
        {"check", "a", "--token", grant.text("/token")},
        {"check", "a", "--token", "1"},
        {"status"},
        {"status", "a"},
        {"ls"},
        {"history"},
        {"history", "--verify"},
        {"history", "none"},
        {"unlock", "a"},
        {"unlock", "none", "--yes"},
        {"override", "request", "a"},
        {"override", "list"},
        {"override", "deny", "a"},
        {"override", "approve", "a"},
        {"hold", "c", "--for", "1h", "-m", "x"},
        {"hold", "c"},
        {"doctor"},
        {"doctor", "--strict"},
        {"init"},
        {"init", "--print"},
        {"completion", "bash"},
        {"completion", "x"},
        {"version"},
        {"help"},
        {"help", "acquire"},
        {"help", "nonsense"},
        {"transfer", "a", "--to", "x"},
        {"transfer", "a", "--to", "x"},
        {"release", "a"},
        {"release", "a", "--if-held"},
        {"unlock", "a", "--yes"},
        {"nonsense"},
    };
    for (const Args& command : commands) {
        Args args = command;
        args.emplace_back("--json");
        const auto ended = box.run(args, {{"HOLDFAST_LEASE", grant.text("/lease")}});
        const auto document = Document::parse(ended.out);
        ASSERT_TRUE(document) << command[0] << ": " << ended.out;
        // `doctor --strict` fails with its findings, which are no error of the command.
        if (command.back() == "--strict") continue;
        EXPECT_EQ(document->contains("/error"), ended.status != 0) << command[0] << ": " << ended.out;
    }
}

TEST(Documents, ALockHasAllItsFieldsHeldOrFree) {
    Sandbox box;
    ASSERT_EQ(box.run({"acquire", "held", "--ttl", "1h"}).status, 0);
    for (const char* name : {"held", "free"}) {
        const auto lock = box.run({"status", name, "--json"}).json();
        for (const char* field : {"/name", "/state", "/token", "/lock_id", "/holder", "/user", "/operation", "/reason",
                                  "/acquired_at", "/renewed_at", "/renew_seq", "/expires_at", "/expires_in_ms",
                                  "/max_until", "/waiters", "/override", "/store_id", "/grade", "/meta"})
            EXPECT_TRUE(lock.contains(field)) << name << field;
    }
    const auto lock = box.run({"status", "held", "--json"}).json();
    EXPECT_THAT(lock.text("/expires_at"), testing::MatchesRegex("....-..-..T..:..:..\\....Z"));
    EXPECT_TRUE(lock.has("/store_id"));
    const auto event = box.run({"history", "held", "--json"}).json();
    for (const char* field : {"seq", "at", "name", "event", "token", "lock_id", "holder", "actor", "reason", "details",
                              "prev_hash", "hash"})
        EXPECT_TRUE(event.contains(std::string("/events/0/") + field)) << field;
    EXPECT_EQ(event.text("/events/0/hash").size(), 64U);
}

TEST(Documents, DoctorShowsTheGradeAndStrictMakesItCount) {
    Sandbox box;
    ASSERT_EQ(box.run({"init"}).status, 0);
    const auto found = box.run({"doctor", "--json"});
    EXPECT_EQ(found.status, 0);
    EXPECT_THAT(found.json().text("/grade"), testing::AnyOf("A", "B"));
    EXPECT_GT(found.json().size("/checks"), 0U);
    const auto unsynced = box.run({"doctor", "--strict", "--json", "-s", "sqlite:x.db?sync=off"});
    EXPECT_EQ(unsynced.status, 78);
    EXPECT_EQ(unsynced.json().text("/grade"), "B");
}

TEST(Documents, DoctorShowsWhatTheStoreCanDo) {
    Sandbox box;
    const auto found = box.run({"doctor", "--json", "-s", "sqlite:x.db"}).json();
    for (const std::string_view field : {"is_shared", "has_sessions", "pushes", "commits_batches_as_one",
                                         "shows_only_durable", "clock_resolution_ms", "largest_value"})
        EXPECT_TRUE(found.has("/properties/" + std::string(field))) << field;
    EXPECT_EQ(found.number("/properties/clock_resolution_ms"), 1);
    EXPECT_THAT(box.run({"doctor", "-s", "sqlite:x.db"}).out, testing::HasSubstr("wakes waiters"));
    EXPECT_THAT(box.run({"doctor", "-s", "file:x"}).out, testing::HasSubstr("one by one"));
}

TEST(Documents, VersionNamesItsStores) {
    Sandbox box;
    const auto version = box.run({"version", "--json"}).json();
    EXPECT_TRUE(version.has("/version"));
    EXPECT_GE(version.size("/stores"), 3U);
    EXPECT_EQ(box.run({"--version"}).status, 0);
}

TEST(Documents, CompletionsAndManualKnowEveryCommandAndFlag) {
    Sandbox box;
    const std::string manual = box.run({"help", "--man"}).out;
    const std::string overview = box.run({"help"}).out;
    for (const char* shell : {"bash", "zsh", "fish"}) {
        const std::string script = box.run({"completion", shell}).out;
        for (const cli::Command* command : cli::commands()) {
            const std::string first(command->name.substr(0, command->name.find(' ')));
            EXPECT_THAT(script, HasSubstr(first)) << shell;
            for (const cli::Option* option : cli::options_of(*command)) {
                const std::string flag = (std::string(shell) == "fish" ? "-l " : "--") + std::string(option->name);
                EXPECT_THAT(script, HasSubstr(flag)) << shell;
            }
        }
    }
    for (const cli::Command* command : cli::commands()) {
        EXPECT_THAT(overview, HasSubstr(std::string(command->name)));
        EXPECT_THAT(manual, HasSubstr("holdfast " + std::string(command->name)));
        const std::string name(command->name);
        const auto space = name.find(' ');
        const Args asked = space == std::string::npos ? Args{"help", name}
                                                      : Args{"help", name.substr(0, space), name.substr(space + 1)};
        const auto help = box.run(asked);
        EXPECT_EQ(help.status, 0) << name;
        for (const cli::Option* option : cli::options_of(*command))
            EXPECT_THAT(help.out, HasSubstr("--" + std::string(option->name)));
        Args by_flag(asked.begin() + 1, asked.end());
        by_flag.emplace_back("--help");
        EXPECT_EQ(box.run(by_flag).out, help.out) << name;
    }
}

TEST(Documents, TheScriptsAndTheManualAreWellFormed) {
    Sandbox box;
    box.write(box.root / "bash", box.run({"completion", "bash"}).out);
    EXPECT_EQ(box.run_program({"/bin/bash", "-n", (box.root / "bash").string()}).err, "");
    box.write(box.root / "man", box.run({"help", "--man"}).out);
    if (!std::filesystem::exists("/usr/bin/groff")) GTEST_SKIP() << tests::not_here << "groff is not installed";
    const auto formatted = box.run_program({"/usr/bin/groff", "-man", "-Tascii", "-ww", (box.root / "man").string()});
    EXPECT_EQ(formatted.err, "");
}

TEST(Documents, BashCompletesCommandsAndFlags) {
    Sandbox box;
    box.write(box.root / "bash", box.run({"completion", "bash"}).out);
    const auto complete = [&](const std::string& words, int at) {
        return box
            .run_program({"/bin/bash", "-c",
                          "source '" + (box.root / "bash").string() + "'; COMP_WORDS=(" + words +
                              "); COMP_CWORD=" + std::to_string(at) + "; _holdfast; echo \"${COMPREPLY[@]}\""})
            .out;
    };
    EXPECT_EQ(complete("holdfast acq", 1), "acquire\n");
    EXPECT_EQ(complete("holdfast override app", 2), "approve\n");
    EXPECT_EQ(complete("holdfast acquire --tt", 2), "--ttl\n");
    EXPECT_EQ(complete("holdfast completion f", 2), "fish\n");
}

}  // namespace
}  // namespace holdfast::cli_test
