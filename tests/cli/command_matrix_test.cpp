// Every command against every store that does not work, and every command that needs a lease against every state that
// its lock may be in: code, exit status, document, the two lines for people.
#include "cli/command.hpp"
#include "holdfast/error.hpp"
#include "sandbox.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace holdfast::cli_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string unknown_lease = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');

const ErrorRow& row_named(const std::string& code) {
    const auto row = std::ranges::find(error_table(), code, &ErrorRow::name);
    EXPECT_NE(row, error_table().end()) << code;
    return row == error_table().end() ? row_of(Errc::usage) : *row;
}

bool has_format(const Args& args) {
    const auto* command = cli::find_command(args[0], cli::has_verbs(args[0]) ? args[1] : "");
    return command != nullptr &&
           std::ranges::find(command->options, "format", &cli::Option::name) != command->options.end();
}

Args with(Args args, const std::string& more) {
    args.insert(args.begin(), more);
    return args;
}

/// All that is promised of a command that is refused with `code`. The error's document is returned.
Document expect_refused(Sandbox& box, const Args& args, const Environment& environment, const std::string& code,
                        const std::string& hint) {
    const std::string what = fmt::format("{} -> {}", fmt::join(args, " "), code);
    const int status = row_named(code).exit_status;

    const auto document = box.run(with(args, "--json"), environment);
    EXPECT_EQ(document.status, status) << what << document.out;
    EXPECT_EQ(document.code(), code) << what;
    const auto error = document.json();
    // The document of run tells more: what became of the command.
    EXPECT_EQ(error.size(""), args[0] == "run" ? 4U : 1U) << what;
    EXPECT_EQ(error.size("/error"), 5U) << what << document.out;
    for (const char* field : {"/error/message", "/error/hint", "/error/holder", "/error/retry_after_ms"})
        EXPECT_TRUE(error.contains(field)) << what << field;
    EXPECT_EQ(error.text("/error/hint"), hint) << what;

    const auto text = box.run(args, environment);
    EXPECT_EQ(text.status, status) << what;
    EXPECT_EQ(text.out, "") << what;
    EXPECT_THAT(text.err, HasSubstr(fmt::format("holdfast: {}: ", code))) << what;
    EXPECT_THAT(text.err, EndsWith("\n  " + hint + "\n")) << what;

    const auto quiet = box.run(with(args, "-q"), environment);
    EXPECT_EQ(quiet.status, status) << what;
    EXPECT_THAT(quiet.err, HasSubstr(fmt::format("holdfast: {}: ", code))) << what << ": quiet is not silent";
    EXPECT_THAT(quiet.err, Not(HasSubstr(hint))) << what;

    if (has_format(args)) {
        const auto shell = box.run(args, [&] {
            Environment all = environment;
            all["HOLDFAST_FORMAT"] = "sh";
            return all;
        }());
        EXPECT_EQ(shell.status, status) << what;
        EXPECT_EQ(shell.out, fmt::format("case $- in *i*) (exit {0});; *) exit {0};; esac\n", status)) << what;
    }
    return error;
}

/// One call of every command that uses a store.
std::vector<Args> calls() {
    return {
        {"run", "a", "--", "true"},
        {"acquire", "a"},
        {"acquire", "a", "--wait", "1ms"},
        {"acquire", "a", "--if-held", "skip"},
        {"renew", "a", "--lease", unknown_lease},
        {"renew", "a", "--lease", unknown_lease, "--ttl", "1m"},
        {"release", "a", "--lease", unknown_lease},
        {"release", "a", "--lease", unknown_lease, "--if-held"},
        {"transfer", "a", "--lease", unknown_lease, "--to", "b"},
        {"check", "a", "--token", "1"},
        {"status", "a"},
        {"status"},
        {"history", "a"},
        {"history"},
        {"history", "--verify"},
        {"history", "a", "--verify"},
        {"history", "--follow"},
        {"watch"},
        {"unlock", "a", "--yes"},
        {"unlock", "a"},
        {"override", "request", "a"},
        {"override", "request", "a", "--wait", "1m"},
        {"override", "approve", "a"},
        {"override", "deny", "a"},
        {"override", "list"},
        {"hold", "a", "--for", "1h", "-m", "x"},
        {"repair", "a", "--yes"},
        {"fence", "bind", "--lock", "a", "--yes"},
        {"prune"},
        {"prune", "--dry-run"},
        {"bench", "--time", "0", "--clients", "1"},
        {"init"},
    };
}

TEST(CommandMatrix, EveryCommandSaysThatAStoreIsNotOneOfOurs) {
    Sandbox box;
    box.write(box.work / "other.db", std::string(4096, 'x'));
    const auto before = box.files();
    // A migration opens its store only when it has something to do, and data sync when its files fit; API tokens and
    // worktrees have places of their own; serve has tests of its own.
    std::set<std::string> seen{"doctor", "completion", "version", "help", "migrate",
                               "token",  "worktree",   "serve",   "data"};
    for (const Args& args : calls()) {
        seen.insert(args[0]);
        const auto error = expect_refused(box, args, {{"HOLDFAST_STORE", "sqlite:other.db"}}, "E_FORMAT_UNSUPPORTED",
                                          "see what is wrong with it: holdfast doctor, or name another with --store");
        EXPECT_FALSE(error.has("/error/holder")) << args[0];
    }
    EXPECT_EQ(box.files(), before) << "nothing was written";
    for (const cli::Command* command : cli::commands())
        EXPECT_TRUE(seen.contains(std::string(command->name.substr(0, command->name.find(' '))))) << command->name;
}

TEST(CommandMatrix, EveryCommandSaysThatAStoreIsAway) {
    Sandbox box;
    const std::string url = "redis://127.0.0.1:1/0?allow_lossy=on";
    if (box.run({"version"}).out.find("redis") == std::string::npos)
        GTEST_SKIP() << tests::not_here << "this build has no Redis store";
    for (Args args : calls()) {
        // What would be tried again and again until it works.
        if (args[0] == "acquire" && args.size() > 2 && args[2] == "--wait") continue;
        args.insert(std::ranges::find(args, "--"), {"-s", url});
        const auto refused = box.run(with(args, "--json"));
        EXPECT_EQ(refused.status, 69) << args[0] << refused.out;
        EXPECT_EQ(refused.code(), "E_STORE_UNAVAILABLE") << args[0];
        EXPECT_EQ(refused.json().text("/error/hint"),
                  "nothing was changed; try again, or find out more with: holdfast doctor -s '" + url + "'")
            << args[0];
    }
}

TEST(CommandMatrix, EveryCommandSaysThatARecordIsDamaged) {
    Sandbox box;
    const Environment store{{"HOLDFAST_STORE", "file:locks"}};
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}, store).status, 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(box.work / "locks"))
        if (entry.path().filename() == "record") box.write(entry.path(), "nonsense");
    for (const Args& args : calls()) {
        // These look at no record, at those of other locks, or at all of them; and repair is what helps.
        if (args[0] == "init" || args[0] == "bench" || args[0] == "fence" || args == Args{"status"} ||
            args[0] == "repair")
            continue;
        const std::string named = args[0] == "status" ? "a" : "NAME";
        (void)expect_refused(box, args, store, "E_RECORD_CORRUPT",
                             "keep a copy of the store before anything else, then find out who changed it; this makes "
                             "the lock usable again: holdfast repair " +
                                 named);
    }
}

// It can be read, as a store that nobody has used yet, and the first change fails.
TEST(CommandMatrix, WhatWouldCreateAStoreSaysThatItCannotBeCreated) {
    Sandbox box;
    for (const std::string url : {"sqlite:/proc/holdfast-none/locks.db", "file:/proc/holdfast-none"}) {
        const std::set<std::string> creating{"run", "acquire", "hold", "init", "bench"};
        for (const Args& args : calls()) {
            if (!creating.contains(args[0])) continue;
            (void)expect_refused(box, args, {{"HOLDFAST_STORE", url}}, "E_STORE_UNAVAILABLE",
                                 "nothing was changed; try again, or find out more with: holdfast doctor");
        }
        for (const Args& args : {Args{"status"}, Args{"status", "a"}, Args{"history"}, Args{"override", "list"}})
            EXPECT_EQ(box.run(args, {{"HOLDFAST_STORE", url}}).status, 0) << args[0];
    }
}

/// What may have become of the lock for which the caller has a lease.
enum class State { never_used, theirs, ran_out, released, taken, broken };

class LeaseMatrix : public testing::TestWithParam<std::string> {
protected:
    LeaseMatrix() { box.environment["HOLDFAST_STORE"] = GetParam(); }

    Document acquire(const std::string& name, const std::string& holder, const std::string& ttl = "1h") {
        return box.run({"acquire", name, "--holder", holder, "--ttl", ttl, "--json"}).json();
    }
    std::string state_of(const std::string& name) { return box.run({"status", name, "--json"}).json().text("/state"); }

    /// Brings the lock into the state, and returns the lease and the token that the caller has, or had.
    Environment prepare(State state, const std::string& name) {
        if (state == State::never_used) return {{"HOLDFAST_LEASE", unknown_lease}, {"HOLDFAST_TOKEN", "1"}};
        if (state == State::theirs) {
            (void)acquire(name, "them");
            return {{"HOLDFAST_LEASE", unknown_lease}, {"HOLDFAST_TOKEN", "1"}};
        }
        const bool ends = state == State::ran_out || state == State::taken;
        const auto mine = acquire(name, "me", ends ? "50ms" : "1h");
        const Environment lease{{"HOLDFAST_LEASE", mine.text("/lease")}, {"HOLDFAST_TOKEN", mine.text("/token")}};
        if (ends) {
            EXPECT_TRUE(eventually([&] { return state_of(name) == "expired"; }));
        }
        if (state == State::taken) (void)acquire(name, "them");
        if (state == State::released) {
            EXPECT_EQ(box.run({"release", name}, lease).status, 0);
        }
        if (state == State::broken) {
            EXPECT_EQ(box.run({"unlock", name, "--yes"}).status, 0);
        }
        return lease;
    }

    Sandbox box;
};

Args command_for(const std::string& what, const std::string& name) {
    if (what == "revive") return {"renew", name, "--revive"};
    if (what == "transfer") return {"transfer", name, "--to", "heir"};
    if (what == "request") return {"override", "request", name};
    if (what == "approve") return {"override", "approve", name};
    if (what == "deny") return {"override", "deny", name};
    if (what == "unlock") return {"unlock", name, "--yes"};
    if (what == "hold") return {"hold", name, "--for", "1h", "-m", "x"};
    return {what, name};
}

std::string hint_of(const std::string& code, const std::string& name) {
    if (code == "E_LOCK_CONFLICT") return "wait for it with --wait 2m, or look: holdfast status " + name;
    if (code == "E_LOCK_EXPIRED") return "stop the work, then take it again: holdfast acquire " + name;
    if (code == "E_FENCING_MISMATCH") return "stop: a newer holder is at work; see holdfast history " + name;
    return "see who holds it and what happened: holdfast history " + name;
}

TEST_P(LeaseMatrix, EveryCommandIsRefusedAsTheStateOfItsLockDemands) {
    const std::string none = "E_LOCK_NOT_HELD";
    const std::string conflict = "E_LOCK_CONFLICT";
    const std::string stale = "E_FENCING_MISMATCH";
    const std::string late = "E_LOCK_EXPIRED";
    const std::map<std::string, std::string> nobody{{"renew", none},    {"revive", none}, {"release", none},
                                                    {"transfer", none}, {"check", none},  {"request", none},
                                                    {"approve", none},  {"deny", none},   {"unlock", none}};
    const std::map<std::string, std::string> another{{"renew", none},    {"revive", none},      {"release", none},
                                                     {"transfer", none}, {"check", stale},      {"approve", none},
                                                     {"deny", none},     {"acquire", conflict}, {"hold", conflict}};
    auto released = nobody;
    released.erase("release");  // A repeated release is one.
    auto broken = nobody;
    broken["check"] = stale;  // The token rose, so that what the old holder still writes can be refused.
    const std::vector<std::pair<State, std::map<std::string, std::string>>> table{
        {State::never_used, nobody},
        {State::theirs, another},
        {State::taken, another},
        {State::ran_out,
         {{"renew", late}, {"transfer", late}, {"check", late}, {"request", none}, {"approve", none}, {"deny", none}}},
        {State::released, released},
        {State::broken, broken},
    };
    int place = 0;
    for (const auto& [state, codes] : table)
        for (const auto& [what, code] : codes) {
            const std::string name = fmt::format("{}-{}", what, place++);
            const Environment lease = prepare(state, name);
            const auto before = box.run({"history", name, "--json"}).out;
            const auto error = expect_refused(box, command_for(what, name), lease, code, hint_of(code, name));
            EXPECT_EQ(error.text("/error/holder/name"), name) << "the lock as it stands";
            EXPECT_EQ(error.text("/error/holder/state"), state_of(name)) << name;
            EXPECT_THAT(error.text("/error/message"), HasSubstr(name));
            EXPECT_THAT(error.text("/error/holder/expires_in_ms"), Not(StartsWith("-"))) << name;
            EXPECT_EQ(box.run({"history", name, "--json"}).out, before) << name << ": nothing was changed";
        }
}

INSTANTIATE_TEST_SUITE_P(Stores, LeaseMatrix, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
