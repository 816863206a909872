// What a command says and leaves behind when it cannot do its work: bad and contradictory arguments of every command,
// standard streams that are closed or full.
#include "cli/command.hpp"
#include "sandbox.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string a_lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
const std::string long_text(5000, 'x');

struct Refusal {
    Args args;
    std::string code;
    std::string says;  ///< Part of the message.
    Environment environment{};
};

std::vector<Refusal> refusals() {
    return {
        {{"history", "--verify", "--follow"}, "E_USAGE", "--follow"},
        {{"history", "--verify", "--since", "1h"}, "E_USAGE", "--since"},
        {{"history", "a", "--verify", "--limit", "3"}, "E_USAGE", "--limit"},
        {{"history", ""}, "E_NAME_INVALID", "empty"},
        {{"history", "a", "b"}, "E_USAGE", "\"b\""},
        {{"history", "--limit", "99999999999999999999"}, "E_USAGE", "--limit"},
        {{"history", "--limit", "1x"}, "E_USAGE", "--limit"},
        {{"history", "--since", "400d"}, "E_USAGE", "--since"},
        {{"history"}, "E_USAGE", "HOLDFAST_LIMIT", {{"HOLDFAST_LIMIT", "-1"}}},
        {{"watch", "a", "b"}, "E_USAGE", "\"b\""},
        {{"status", ""}, "E_NAME_INVALID", "empty"},
        {{"status", "\xc3"}, "E_NAME_INVALID", "UTF-8"},
        {{"status", long_text}, "E_NAME_INVALID", "255"},
        {{"status", "--json=perhaps"}, "E_USAGE", "on or off"},
        {{"status", "-s"}, "E_USAGE", "-s needs a value"},
        {{"status", "-s", "sqlite:"}, "E_USAGE", "sqlite:FILE"},
        {{"status", "-s", "sqlite:x?sync=maybe"}, "E_USAGE", "sync"},
        {{"status", "-s", "sqlite:x", "-s", "sqlite:y"}, "E_USAGE", "several stores"},
        {{"status", "--config="}, "E_CONFIG", "No such file"},
        {{"unlock", ""}, "E_NAME_INVALID", "empty"},
        {{"unlock", "a", "--yes", "--expect", ""}, "E_USAGE", "--expect"},
        {{"unlock", "a", "--yes=perhaps"}, "E_USAGE", "on or off"},
        {{"unlock", "a"}, "E_USAGE", "HOLDFAST_YES", {{"HOLDFAST_YES", "perhaps"}}},
        {{"override", "list", "a"}, "E_USAGE", "\"a\""},
        {{"override", "approve"}, "E_USAGE", "NAME"},
        {{"override", "approve", "a", "--ttl", "1m"}, "E_USAGE", "--ttl"},
        {{"override", "deny", ""}, "E_NAME_INVALID", "empty"},
        {{"override", "request", "a", "--ttl", "0"}, "E_USAGE", "--ttl"},
        {{"override", "request", "a", "--wait", "never"}, "E_USAGE", "--wait"},
        {{"override", "request", "a", "--holder", ""}, "E_USAGE", "holder"},
        {{"override", "request", "a", "-m", long_text}, "E_USAGE", "reason"},
        {{"override", "request", "a", "-m", "\xff"}, "E_USAGE", "UTF-8"},
        {{"repair"}, "E_USAGE", "NAME"},
        {{"repair", ""}, "E_NAME_INVALID", "empty"},
        {{"prune", "a"}, "E_USAGE", "\"a\""},
        {{"prune", "--keep", "-5m"}, "E_USAGE", "--keep"},
        {{"prune", "--keep="}, "E_USAGE", "--keep"},
        {{"prune", "--holder", ""}, "E_USAGE", "named"},
        {{"prune", "--holder", long_text}, "E_USAGE", "actor"},
        {{"prune", "-m", long_text}, "E_USAGE", "reason"},
        {{"hold", "a", "--for", "0", "-m", "x"}, "E_USAGE", "--for"},
        {{"hold", "a", "--for", "1h", "-m", ""}, "E_USAGE", "--reason"},
        {{"hold", "a", "--for", "1h", "-m", "x", "--unless-held", "a"}, "E_USAGE", "exclude itself"},
        {{"renew", "a", "--lease", a_lease, "--ttl", "1y"}, "E_USAGE", "--ttl"},
        {{"renew", "a", "b", "--lease", a_lease}, "E_USAGE", "\"b\""},
        {{"release", "a", "--lease", ""}, "E_USAGE", "--lease"},
        {{"transfer", "a", "--lease", a_lease, "--to", "\x01"}, "E_USAGE", "control"},
        {{"transfer", "a", "--lease", a_lease, "--to", "b", "--user", long_text}, "E_USAGE", "user"},
        {{"check", "a", "--token", ""}, "E_USAGE", "--token"},
        {{"check", "a", "--token", "1", "--unless-held", ""}, "E_NAME_INVALID", "--unless-held"},
        {{"check", "a", "--token", "1", "--unless-held", "a"}, "E_USAGE", "exclude itself"},
        {{"run", "a"}, "E_USAGE", "command after --"},
        {{"run", "a", "--"}, "E_USAGE", "command after --"},
        {{"run", "a", "--and", "", "--", "true"}, "E_NAME_INVALID", "--and"},
        {{"run", "a", "--grace", "1h", "--", "true"}, "E_USAGE", "grace"},
        {{"run", "a", "--ttl", "1ms", "--", "true"}, "E_USAGE", "--ttl"},
        {{"acquire", "a", "-m", "\xff"}, "E_USAGE", "UTF-8"},
        {{"acquire", "../x", "--if-held", "skip"}, "E_NAME_INVALID", ".."},
        {{"acquire", "a", "--if-held", "skip", "--ttl", "0"}, "E_USAGE", "--ttl"},
        {{"acquire", "a", "--user", "x\ny"}, "E_USAGE", "control"},
        {{"acquire", "a", "--max-hold", "1ms"}, "E_USAGE", "hold"},
        {{"acquire", "a", "--operation", long_text}, "E_USAGE", "operation"},
        {{"acquire", "a"}, "E_USAGE", "HOLDFAST_CONFLICT_EXIT_CODE", {{"HOLDFAST_CONFLICT_EXIT_CODE", "x"}}},
        {{"fence", "protect", "--table", "t"}, "E_USAGE", "--lock"},
        {{"fence", "protect", "--lock", "a"}, "E_USAGE", "--table"},
        {{"fence", "protect", "--table", "t", "--lock", "a"}, "E_USAGE", "PostgreSQL"},
        {{"fence", "unprotect"}, "E_USAGE", "--table"},
        {{"fence", "status", "--database", "redis://x"}, "E_USAGE", "redis"},
        {{"fence", "bind", "--yes"}, "E_USAGE", "--lock"},
        {{"doctor", "a"}, "E_USAGE", "\"a\""},
        {{"doctor", "--strict=2"}, "E_USAGE", "on or off"},
        {{"init", "a"}, "E_USAGE", "\"a\""},
        {{"init", "-s", "nonsense:x", "--print"}, "E_USAGE", "nonsense"},
        {{"serve", "a"}, "E_USAGE", "\"a\""},
        {{"serve", "-s", "sqlite:x?session=on"}, "E_USAGE", "leave session=on out"},
        {{"serve", "--listen", "here"}, "E_USAGE", "ADDRESS:PORT"},
        {{"serve", "--max-body", "many"}, "E_USAGE", "--max-body"},
        {{"serve", "--keep", "soon"}, "E_USAGE", "--keep"},
        {{"token", "create", "ci"}, "E_USAGE", "--token-file"},
        {{"token", "create", "ci", "--token-file", "t"}, "E_USAGE", "--grant"},
        {{"token", "create", "ci", "--token-file", "t", "--grant", "root"}, "E_USAGE", "--grant"},
        {{"token", "create", "--grant", "viewer"}, "E_USAGE", "USER"},
        {{"token", "revoke", "--token-file", "t"}, "E_USAGE", "ID"},
        {{"token", "list", "a"}, "E_USAGE", "\"a\""},
        {{"version", "a"}, "E_USAGE", "\"a\""},
        {{"bench", "a"}, "E_USAGE", "\"a\""},
        {{"completion"}, "E_USAGE", "SHELL"},
        {{"migrate", "up"}, "E_USAGE", "which database"},
        {{"migrate", "up", "--database", "redis://h/0"}, "E_USAGE", "SQL database"},
        {{"migrate", "status", "--database", "sqlite:a.db", "--dir", "absent"}, "E_USAGE", "absent"},
        {{"migrate", "baseline", "x", "--database", "sqlite:a.db"}, "E_USAGE", "\"x\""},
        {{"migrate", "new", "a/b"}, "E_USAGE", "letters"},
        {{"worktree", "init", "a/b"}, "E_NAME_INVALID", "directly in the repository"},
        {{"worktree", "init", "--mode", "x"}, "E_USAGE", "exclusive, shared"},
        {{"worktree", "list"}, "E_USAGE", "is in no repository"},
        {{"worktree", "restore", "8c0ffee1", "../x"}, "E_USAGE", "from the root of the worktree"},
        {{"worktree", "restore", "8c0ffee1", "--dry-run"}, "E_USAGE", "--inplace"},
        {{"worktree", "restore", "8c0ffee1", "--to", "x", "--inplace"}, "E_USAGE", "not both"},
        {{"worktree", "prune", "--keep-last", "many"}, "E_USAGE", "--keep-last"},
        {{"completion", "bash", "zsh"}, "E_USAGE", "\"zsh\""},
        {{"data", "sync", "a"}, "E_USAGE", "\"a\""},
        {{"data", "sync", "--database", "x:y"}, "E_USAGE", "--database"},
        {{"data", "sync"}, "E_USAGE", "which database"},
        {{"token", "create"}, "E_USAGE", "USER"},
        {{"token", "create", "alice", "--token-file", "tokens", "--grant", "owner"},
         "E_USAGE",
         "viewer, holder or admin"},
        {{"token", "revoke"}, "E_USAGE", "ID"},
        {{"token", "list", "a"}, "E_USAGE", "\"a\""},
        {{"help", "nonsense"}, "E_USAGE", "nonsense"},
        {{"help", "override", "nonsense"}, "E_USAGE", "nonsense"},
    };
}

TEST(UnhappyPaths, WhatCannotWorkIsRefusedWithTheArgumentThatIsWrong) {
    std::set<std::string> commands_seen;
    Sandbox box;
    const auto before = box.files();
    for (const Refusal& test : refusals()) {
        commands_seen.insert(test.args[0]);
        const std::string what = fmt::format("{}", fmt::join(test.args, " ")).substr(0, 80);
        const int status = test.code == "E_CONFIG" ? 78 : 64;
        // In front of a `--` that begins a command of its own.
        Args with_json = test.args;
        with_json.insert(with_json.begin(), "--json");
        const auto document = box.run(with_json, test.environment);
        EXPECT_EQ(document.status, status) << what << ": " << document.out;
        EXPECT_EQ(document.code(), test.code) << what;
        EXPECT_THAT(document.json().text("/error/message"), HasSubstr(test.says)) << what;
        EXPECT_TRUE(document.json().has("/error/hint")) << what;
        EXPECT_EQ(document.err, "") << what;

        const auto text = box.run(test.args, test.environment);
        EXPECT_EQ(text.status, status) << what;
        EXPECT_EQ(text.out, "") << what;
        EXPECT_THAT(text.err, testing::StartsWith(fmt::format("holdfast: {}: ", test.code))) << what;
        EXPECT_THAT(text.err, HasSubstr(test.says)) << what;
        EXPECT_LT(text.err.size(), 600U) << what << ": what is too long is not repeated";
    }
    EXPECT_EQ(box.files(), before) << "nothing was written";
    for (const cli::Command* command : cli::commands())
        EXPECT_TRUE(commands_seen.contains(std::string(command->name.substr(0, command->name.find(' ')))))
            << command->name << " has no case here";
}

/// One call of each command that prints something, in an order in which each works.
const std::vector<Args>& printing() {
    static const std::vector<Args> commands{
        {"acquire", "new", "--format", "sh"},
        {"acquire", "other", "-q"},
        {"status"},
        {"status", "a"},
        {"history"},
        {"history", "a"},
        {"history", "--verify"},
        {"renew", "a"},
        {"check", "a"},
        {"override", "request", "a"},
        {"override", "list"},
        {"override", "deny", "a"},
        {"hold", "b", "--for", "1h", "-m", "x"},
        {"prune"},
        {"doctor"},
        {"init"},
        {"init", "--print", "--json"},
        {"completion", "bash"},
        {"version"},
        {"help"},
        {"help", "run"},
        {"release", "a"},
        {"acquire", "a", "--help"},
    };
    return commands;
}

class Streams : public testing::TestWithParam<std::string> {
protected:
    Streams() { box.environment["HOLDFAST_STORE"] = GetParam(); }

    /// With `redirection` as a shell writes it.
    Ended redirected(const Args& args, const std::string& redirection) {
        Args all{"/bin/sh", "-c", "exec \"$0\" \"$@\" " + redirection, box.program};
        all.insert(all.end(), args.begin(), args.end());
        return box.run_program(all, lease);
    }
    std::string state(const std::string& name) { return box.run({"status", name, "--json"}).json().text("/state"); }

    Sandbox box;
    Environment lease{};
};

// A document that was lost is not a success, and a lease that nobody could read is given back.
TEST_P(Streams, AFullStandardOutputIsAFailure) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << tests::not_here << "there is no /dev/full";
    const auto grant = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    lease = {{"HOLDFAST_LEASE", grant.text("/lease")}, {"HOLDFAST_TOKEN", grant.text("/token")}};
    for (const Args& args : printing()) {
        const auto ended = redirected(args, ">/dev/full");
        EXPECT_EQ(ended.status, 125) << args[0];
        EXPECT_THAT(ended.err, HasSubstr("holdfast: cannot write to standard output: the disk is full")) << args[0];
    }
    for (const char* name : {"new", "other", "b"}) EXPECT_EQ(state(name), "free") << name;
}

// Somebody else counts on a lease that was joined.
TEST_P(Streams, AJoinedLeaseThatCannotBePrintedIsNotGivenBack) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << tests::not_here << "there is no /dev/full";
    const auto grant = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    lease = {{"HOLDFAST_LEASE", grant.text("/lease")}, {"HOLDFAST_LOCK", "a"}};
    EXPECT_EQ(redirected({"acquire", "a"}, ">/dev/full").status, 125);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), grant.text("/lock_id"));
}

TEST_P(Streams, AClosedStandardOutputIsAFailureAndNothingOfItEndsUpInTheStore) {
    for (const char* format : {"--format=sh", "--json", "-q"}) {
        const auto ended = redirected({"acquire", "a", format}, ">&-");
        EXPECT_EQ(ended.status, 125) << format;
        EXPECT_THAT(ended.err, HasSubstr("cannot write to standard output")) << format;
        EXPECT_EQ(state("a"), "free") << format;
    }
    for (const auto& [path, content] : box.files()) {
        EXPECT_THAT(content, Not(HasSubstr("HOLDFAST_LEASE"))) << path;
        EXPECT_THAT(content, Not(HasSubstr("\"lease\""))) << path;
    }
    EXPECT_EQ(box.run({"history", "--verify"}).status, 0);
}

TEST_P(Streams, ARunWithoutAnyStandardStreamRuns) {
    EXPECT_EQ(
        redirected({"run", "a", "--", "/bin/sh", "-c", "echo text; echo text >&2; exit 3"}, "<&- >&- 2>&-").status, 3);
    EXPECT_EQ(redirected({"unlock", "a"}, "<&- >&- 2>&-").status, 79);
    EXPECT_EQ(box.run({"history", "a", "--json"}).json().size("/events"), 2U);
    for (const auto& [path, content] : box.files()) EXPECT_THAT(content, Not(HasSubstr("text\n"))) << path;
}

// A reader that has read enough is no error of ours, and is told as for any other program.
TEST_P(Streams, AReaderThatIsGoneEndsACommandLikeABrokenPipe) {
    ASSERT_EQ(box.run({"acquire", "held", "--ttl", "1h"}).status, 0);
    for (const Args& args : {Args{"status"}, Args{"history"}, Args{"help"}, Args{"acquire", "a"}}) {
        Args all{"/bin/bash", "-c",
                 "set -o pipefail; { trap '' PIPE; while echo 2>/dev/null; do :; done; exec \"$0\" \"$@\"; } | true",
                 box.program};
        all.insert(all.end(), args.begin(), args.end());
        EXPECT_EQ(box.run_program(all).status, 141) << args[0];
    }
    EXPECT_EQ(state("a"), "free");
}

// A program that has the same pipe made it non-blocking, and its reader is slow.
TEST_P(Streams, AFullPipeThatDoesNotBlockIsWaitedFor) {
    const Running running = box.start_program(
        {"/bin/sh", "-c",
         "mkfifo full && exec 3<>full && { dd if=/dev/zero bs=4096 oflag=nonblock >&3 2>/dev/null || :; } && "
         "exec \"$0\" acquire a >&3",
         box.program});
    const std::string folder = "/proc/" + std::to_string(running.pid());
    ASSERT_TRUE(eventually([&] {
        std::string stat;
        std::getline(std::ifstream(folder + "/stat"), stat);
        return stat.contains("(holdfast) S") || stat.contains("(holdfast) Z");
    }));
    std::string read;
    std::ifstream pipe(box.work / "full", std::ios::binary);
    EXPECT_TRUE(eventually([&] {
        read.resize(4096);
        pipe.read(read.data(), 4096);
        return read.contains("HOLDFAST_LEASE") || pipe.eof();
    }));
    EXPECT_THAT(read, HasSubstr("export HOLDFAST_LEASE="));
    EXPECT_EQ(state("a"), "held");
}

TEST_P(Streams, AnErrorThatCannotBeWrittenKeepsItsStatus) {
    EXPECT_EQ(redirected({"acquire", "../x"}, "2>&-").status, 64);
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    EXPECT_EQ(redirected({"acquire", "a"}, "2>&-").status, 75);
}

INSTANTIATE_TEST_SUITE_P(Stores, Streams, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

TEST(UnhappyPaths, BytesThatAreNoTextAreShownAsSuchInOneDocument) {
    Sandbox box;
    for (const Args& args : {Args{"status", "--config", "\xff\x1b[2J"}, Args{"status", "\xff"}, Args{"\xff\x1b"},
                             Args{"status", "--\xff"}, Args{"status", "-s", "\xff:\x1b"}}) {
        Args with_json = args;
        with_json.emplace_back("--json");
        const auto document = box.run(with_json);
        EXPECT_TRUE(document.json().has("/error/message")) << document.out;
        EXPECT_THAT(box.run(args).err, Not(HasSubstr("\x1b")));
    }
}

TEST(UnhappyPaths, HelpIsADocumentWhenOneIsAskedFor) {
    Sandbox box;
    for (const Args& args : {Args{"--help", "--json"}, Args{"acquire", "-h", "--json"},
                             Args{"help", "acquire", "--json"}, Args{"override", "request", "--help", "--json"}}) {
        const auto help = box.run(args);
        EXPECT_EQ(help.status, 0);
        EXPECT_THAT(help.json().text("/help"), HasSubstr("Usage: holdfast ")) << help.out;
    }
    EXPECT_TRUE(box.run({"--version", "--json"}).json().has("/version"));
}

/// A store that cannot be read: a file of another program.
const std::string unreadable = "sqlite:unreadable.db";

// Both forgive one thing. What else goes wrong is told.
TEST(UnhappyPaths, WhatForgivesAConflictForgivesNothingElse) {
    Sandbox box;
    box.write(box.work / "unreadable.db", std::string(4096, 'x'));
    for (const Args& args :
         {Args{"acquire", "a", "--if-held", "skip"}, Args{"run", "a", "--if-held", "skip", "--", "true"},
          Args{"release", "a", "--if-held", "--lease", a_lease}}) {
        const auto refused = box.run(args, {{"HOLDFAST_STORE", unreadable}});
        EXPECT_EQ(refused.status, 78) << args[0] << refused.err;
        EXPECT_THAT(refused.err, HasSubstr("E_FORMAT_UNSUPPORTED")) << args[0];
    }
    EXPECT_EQ(box.run({"release", "a", "--if-held", "--lease", a_lease}).status, 0);
}

TEST(UnhappyPaths, TheChosenStatusOfAConflictIsThatOfNothingElse) {
    Sandbox box;
    box.write(box.work / "unreadable.db", std::string(4096, 'x'));
    for (const Args& args : {Args{"acquire", "a"}, Args{"run", "a", "--", "true"}})
        EXPECT_EQ(box.run(args, {{"HOLDFAST_STORE", unreadable}, {"HOLDFAST_CONFLICT_EXIT_CODE", "9"}}).status, 78)
            << args[0];
    EXPECT_EQ(box.run({"acquire", "../x", "--conflict-exit-code", "9"}).status, 64);
}

TEST(UnhappyPaths, FollowingAStoreThatIsDamagedMeanwhileEndsWithThatError) {
    for (const Args& args : {Args{"watch"}, Args{"history", "--follow"}}) {
        Sandbox box;
        box.environment["HOLDFAST_STORE"] = "file:locks";
        ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
        Args command{"/usr/bin/timeout", "30", box.program};
        command.insert(command.end(), args.begin(), args.end());
        auto following = box.start_program(command);
        // What it reports shows that it is at work.
        ASSERT_TRUE(eventually([&] {
            EXPECT_EQ(box.run({"run", "b", "-q", "--", "true"}).status, 0);
            return following.out().find("released") != std::string::npos;
        }));
        for (const auto& entry : std::filesystem::recursive_directory_iterator(box.work / "locks"))
            if (entry.path().filename() == "record") box.write(entry.path(), "nonsense");
        const auto ended = following.wait();
        EXPECT_EQ(ended.status, 84) << args[0];
        EXPECT_THAT(ended.err, HasSubstr("E_RECORD_CORRUPT")) << args[0];
    }
}

// A flag that a command does not know is refused, whatever follows it: `--yess` must not become a yes.
TEST(UnhappyPaths, NoFlagIsAbbreviated) {
    Sandbox box;
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    for (const char* flag : {"--ye", "--yess", "--y", "-yx"})
        EXPECT_EQ(box.run({"unlock", "a", flag, "--json"}).code(), "E_USAGE") << flag;
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "held");
}

}  // namespace
}  // namespace holdfast::cli_test
