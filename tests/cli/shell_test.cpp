// What shells make of Holdfast: completed names are data, and a script that evaluates --format sh never goes on without
// its lock. Method: the real shells.
#include "sandbox.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAreArray;

class Shell : public testing::Test {
protected:
    void SetUp() override {
        fs::create_directories(box.root / "bin");
        fs::create_symlink(box.program, box.root / "bin" / "holdfast");
        box.environment["PATH"] = (box.root / "bin").string() + ":/usr/bin:/bin";
    }

    /// Runs a script; one that waits for anything is ended.
    Ended run_in(const std::string& shell, const std::string& script, const Environment& more = {}) {
        return box.run_program({"/usr/bin/timeout", "-s", "KILL", "60", shell, "-c", script}, more);
    }

    void hold(const std::string& name) { EXPECT_EQ(box.run({"acquire", name, "--ttl", "1h", "-q"}).status, 0) << name; }

    void hold_with_dashes(const std::string& name) {
        EXPECT_EQ(box.run({"acquire", "--ttl", "1h", "-q", "--", name}).status, 0) << name;
    }

    /// Whether a lock's name was run: each of them would leave a file.
    bool something_ran() const { return fs::exists(box.work / "ran"); }

    Sandbox box;
};

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

const std::vector<std::string> hostile_names{"x$(touch ran)",
                                             "x`touch ran`",
                                             "x;touch ran",
                                             "x&touch ran",
                                             "x|touch ran",
                                             "x>ran",
                                             "x\"'\\ z",
                                             "x y  z",
                                             "x'$(touch ran)'",
                                             "x\"$(touch ran)\"",
                                             "x${PATH}",
                                             "x*",
                                             "x!!",
                                             "x#y",
                                             "x{a,b}",
                                             "x~",
                                             "x[a]?",
                                             "x\xc3\xbc`touch ran`",
                                             "x\\"};

/// Each would be a flag of the command that it is completed for.
const std::vector<std::string> names_like_flags{"--yes", "--config=evil.toml", "-y", "-", "--"};

TEST_F(Shell, BashCompletesNamesAsDataAndQuotesThem) {
    for (const std::string& name : hostile_names) hold(name);
    for (const std::string& name : names_like_flags) hold_with_dashes(name);
    // What is completed is put into the command line as it is; eval runs that line.
    const std::string complete =
        "source <(holdfast completion bash)\n"
        "complete_word() { COMP_WORDS=(holdfast release \"$1\") COMP_CWORD=2; _holdfast; }\n"
        "accept() { for word in \"${COMPREPLY[@]}\"; do eval \"printf '%s\\\\n' $word\"; done; }\n";
    for (const std::string locale : {"C", "C.UTF-8"}) {
        const auto all = run_in("/bin/bash", complete + "complete_word x; accept", {{"LC_ALL", locale}});
        EXPECT_THAT(lines_of(all.out), UnorderedElementsAreArray(hostile_names)) << all.err;
        EXPECT_FALSE(something_ran()) << all.err;
    }
    const auto one = run_in("/bin/bash", complete + "complete_word 'x\\$\\('; accept");
    EXPECT_EQ(one.out, "x$(touch ran)\n") << "the word that was typed is compared with the quoted one";
    const auto quoted = run_in("/bin/bash", complete + "complete_word \"'x\"; accept; complete_word '\"x'; accept");
    EXPECT_EQ(quoted.out, "") << "what is escaped for an open line would be wrong in an open quote";
    const auto anything = run_in("/bin/bash", complete + "complete_word ''; accept");
    EXPECT_THAT(lines_of(anything.out), UnorderedElementsAreArray(hostile_names)) << "no name becomes a flag";
    EXPECT_FALSE(something_ran());
}

TEST_F(Shell, BashCompletesCommandsAndFlags) {
    const auto ended = run_in("/bin/bash",
                              "source <(holdfast completion bash)\nCOMP_WORDS=(holdfast rel) COMP_CWORD=1; _holdfast\n"
                              "echo \"${COMPREPLY[@]}\"\nCOMP_WORDS=(holdfast release a --if) COMP_CWORD=3; _holdfast\n"
                              "echo \"${COMPREPLY[@]}\"");
    EXPECT_EQ(ended.out, "release\n--if-held\n") << ended.err;
}

TEST_F(Shell, ZshCompletesNamesAsDataAndQuotesThem) {
    if (!fs::exists("/usr/bin/zsh")) GTEST_SKIP() << tests::not_here << "zsh is not installed";
    const std::string name = "x$(touch ran)`touch ran`\"'\\ ;touch ran";
    hold(name);
    // An interactive shell behind a terminal, as zsh tests its own completion.
    const std::string script =
        "zmodload zsh/zpty\n"
        "zpty inner zsh -f -i\n"
        "zpty -w -n inner $'PS1=; autoload -Uz compinit; compinit -D -u; source <(holdfast completion zsh); "
        "print rea\"\"dy\\n'\n"
        "zpty -r -m inner seen '*ready*'\n"
        "zpty -w -n inner $'holdfast status --json x\\t\\n'\n"
        "zpty -r -m inner seen '*store_id*'\n"
        "print -r -- $seen\nzpty -d inner\n";
    const auto ended = run_in("/usr/bin/zsh", script, {{"TERM", "dumb"}});
    EXPECT_THAT(ended.out, HasSubstr(R"("name":"x$(touch ran)`touch ran`\"'\\ ;touch ran","state":"held")"));
    EXPECT_FALSE(something_ran());
}

TEST_F(Shell, ZshIsOfferedNoNameThatWouldBeAFlag) {
    if (!fs::exists("/usr/bin/zsh")) GTEST_SKIP() << tests::not_here << "zsh is not installed";
    for (const std::string& name : names_like_flags) hold_with_dashes(name);
    hold("x y");
    // What the completion hands to zsh, told by a command in the place of zsh's own.
    const auto ended = run_in("/usr/bin/zsh",
                              "compdef() { }\ncompadd() { shift; print -rl -- $@ }\nsource <(holdfast completion zsh)\n"
                              "words=(holdfast unlock '') CURRENT=3 PREFIX=''\n_holdfast");
    EXPECT_EQ(ended.out, "x y\n") << ended.err;
}

TEST_F(Shell, FishIsOfferedNoNames) {
    EXPECT_THAT(box.run({"completion", "fish"}).out, Not(HasSubstr("$(")));
    EXPECT_THAT(box.run({"completion", "fish"}).out, Not(HasSubstr("(holdfast")));
}

/// How a script takes a lock, and what it would do under it.
std::string old_idiom(const std::string& command) { return "eval \"$(" + command + ")\"\necho working"; }
std::string new_idiom(const std::string& command) {
    return "lease=$(" + command + ") || exit\neval \"$lease\"\necho working";
}

const std::vector<std::string> posix_shells{"/bin/sh", "/bin/bash"};

TEST_F(Shell, NoScriptGoesOnAfterAConflict) {
    hold("a");
    for (const std::string& shell : posix_shells)
        for (const std::string prefix : {"", "set -eu\n"})
            for (const auto& idiom : {old_idiom, new_idiom}) {
                const auto refused = run_in(shell, prefix + idiom("holdfast acquire a --format sh"));
                EXPECT_EQ(refused.status, 75) << shell << prefix;
                EXPECT_EQ(refused.out, "");
                const auto skipped = run_in(shell, prefix + idiom("holdfast acquire a --format=sh --if-held skip"));
                EXPECT_EQ(skipped.status, 0) << shell << prefix;
                EXPECT_EQ(skipped.out, "");
                const auto free = run_in(shell, prefix + idiom("holdfast acquire free-$$ --format sh"));
                EXPECT_EQ(free.out, "working\n") << shell << prefix << free.err;
            }
}

TEST_F(Shell, NoScriptGoesOnAfterAnyOtherFailure) {
    const std::string other = "HOLDFAST_LEASE=00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    box.write(box.root / "bad.toml", "nonsense = 1\n");
    const std::vector<std::pair<std::string, int>> failures{
        {"holdfast acquire a --format sh --unknown", 64},
        {"holdfast acquire a --unknown --format sh", 64},
        {"holdfast aquire a --format sh", 64},
        {"HOLDFAST_FORMAT=sh holdfast aquire a", 64},
        {"HOLDFAST_FORMAT=sh holdfast acquire a --unknown", 64},
        {"holdfast acquire --format sh", 64},
        {"holdfast acquire a --format sh --ttl never", 64},
        {"holdfast acquire a --format sh -E 999", 64},
        {"holdfast acquire a --format sh --config ../bad.toml", 78},
        {"holdfast acquire a --format sh -s memory:", 78},
        {"holdfast hold a --format sh", 64},
        {other + " holdfast transfer a --to b --format sh", 79},
    };
    for (const std::string& shell : posix_shells)
        for (const auto& [command, status] : failures) {
            const auto ended = run_in(shell, old_idiom(command));
            EXPECT_EQ(ended.out, "") << command;
            EXPECT_EQ(ended.status, status) << command << ended.err;
        }
}

TEST_F(Shell, AFormatOnTheCommandLineCountsMoreThanJsonElsewhere) {
    hold("a");
    box.write(box.root / "json.toml", "json = true\n");
    const std::string failure = "holdfast acquire a --format sh --unknown";
    const std::string conflict = "holdfast acquire a --format sh";
    for (const Environment& elsewhere :
         {Environment{{"HOLDFAST_JSON", "1"}}, Environment{{"HOLDFAST_CONFIG", (box.root / "json.toml").string()}}}) {
        const std::string where = elsewhere.begin()->first;
        for (const std::string& shell : posix_shells)
            for (const auto& idiom : {old_idiom, new_idiom}) {
                const auto refused = run_in(shell, idiom(conflict), elsewhere);
                EXPECT_EQ(refused.status, 75) << where << shell << refused.err;
                EXPECT_EQ(refused.out, "") << where << shell;
                const auto wrong = run_in(shell, idiom(failure), elsewhere);
                EXPECT_EQ(wrong.status, 64) << where << shell << wrong.err;
                EXPECT_EQ(wrong.out, "") << where << shell;
                const auto free =
                    run_in(shell, idiom("holdfast acquire free-$$ --format sh") + " with ${HOLDFAST_LEASE:+a lease}",
                           elsewhere);
                EXPECT_EQ(free.out, "working with a lease\n") << where << shell << free.err;
            }
    }
    // The environment counts more than the file, and an explicit --json more than everything.
    const Environment file_and_variable{{"HOLDFAST_CONFIG", (box.root / "json.toml").string()},
                                        {"HOLDFAST_FORMAT", "sh"}};
    EXPECT_THAT(box.run({"acquire", "b"}, file_and_variable).out, testing::StartsWith("export "));
    EXPECT_EQ(box.run({"acquire", "a", "--json"}, file_and_variable).code(), "E_LOCK_CONFLICT");
    EXPECT_EQ(box.run({"acquire", "a", "--json", "--unknown"}, file_and_variable).code(), "E_USAGE");
    EXPECT_THAT(box.run({"acquire", "c", "--format", "text"}, {{"HOLDFAST_JSON", "1"}}).out, HasSubstr("c is yours"));
}

TEST_F(Shell, NoScriptGoesOnWhenHoldfastWasKilledOrIsMissing) {
    box.write(box.root / "bin" / "dying", "#!/bin/sh\nkill -9 $$\n");
    fs::permissions(box.root / "bin" / "dying", fs::perms::owner_all);
    for (const std::string& shell : posix_shells)
        for (const std::string prefix : {"", "set -eu\n"}) {
            EXPECT_EQ(run_in(shell, prefix + new_idiom("dying acquire a --format sh")).status, 128 + 9);
            EXPECT_EQ(run_in(shell, prefix + new_idiom("nowhere acquire a --format sh")).status, 127);
        }
}

TEST_F(Shell, AnInteractiveShellSurvivesARefusal) {
    hold("a");
    const auto ended = box.run_program({"/usr/bin/timeout", "-s", "KILL", "60", "/bin/bash", "--norc", "-i", "-c",
                                        "eval \"$(holdfast acquire a --format sh)\"; echo \"still here: $?\""});
    EXPECT_THAT(ended.out, HasSubstr("still here: 75"));
}

TEST_F(Shell, OnlyCommandsThatHandALeaseOverAnswerInShell) {
    hold("a");
    const Environment shell{{"HOLDFAST_FORMAT", "sh"}};
    EXPECT_EQ(box.run({"check", "a", "--token", "1"}, shell).out, "");
    EXPECT_THAT(box.run({"check", "a", "--token", "1", "--format", "sh"}).out, HasSubstr("exit 64"));
    EXPECT_EQ(box.run({"acquire", "a", "--format", "sh", "--json"}).code(), "E_LOCK_CONFLICT");
}

}  // namespace
}  // namespace holdfast::cli_test
