// Goal: the commands `holdfast worktree …` keep what the specification of locks and snapshots demands, with real
// processes. Each MUST of it has a test; docs/reference/worktree.md lists them.
#include "cli/sandbox.hpp"
#include "support/isolation.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <thread>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class WorktreeCommand : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(box_.run({"worktree", "init"}).status, 0);
        ASSERT_EQ(box_.run({"worktree", "init", "free", "--mode", "shared"}).status, 0);
        for (int i = 0; i < 5; ++i) box_.write(box_.work / "main" / fmt::format("f{}", i), fmt::format("{}", i));
        box_.write(box_.work / "free/a", "a");
    }

    Document status() { return box_.run({"worktree", "status", "--json"}).json(); }
    Document history(const std::string& worktree = "main") {
        return box_.run({"worktree", "history", "--worktree", worktree, "--json"}).json();
    }
    /// Holds the worktree until the file `go` is there.
    Running holder(const Args& flags = {}) {
        Args args{"worktree", "run"};
        args.insert(args.end(), flags.begin(), flags.end());
        args.insert(args.end(), {"--", "sh", "-c", "touch held; while [ ! -e go ]; do sleep 0.05; done"});
        Running running = box_.start(args);
        EXPECT_TRUE(eventually([&] { return fs::exists(box_.work / "held"); }));
        return running;
    }
    void let_go() { box_.write(box_.work / "go", ""); }

    Sandbox box_;
};

TEST_F(WorktreeCommand, TheLockRecordHasEveryField) {
    Running running = holder();
    const Document seen = status();
    EXPECT_EQ(seen.text("/lock/worktree_id"), "main");
    for (const char* field : {"lock_id", "holder_id", "created_at", "last_renewed_at", "lease_expires_at"})
        EXPECT_FALSE(seen.text(fmt::format("/lock/{}", field)).empty()) << field;
    EXPECT_GT(seen.number("/lock/fencing_token"), 0);
    // host:user:pid:start_time
    const std::string holder_id = seen.text("/lock/holder_id");
    EXPECT_EQ(std::ranges::count(holder_id, ':'), 3) << holder_id;
    let_go();
    EXPECT_EQ(running.wait().status, 0);
}

TEST_F(WorktreeCommand, OneOfManyThatRunAtOnceHoldsTheLock) {
    std::vector<Running> all;
    for (int i = 0; i < 6; ++i)
        all.push_back(box_.start({"worktree", "run", "--wait", "1m", "--", "sh", "-c",
                                  "mkdir inside && sleep 0.05 && rmdir inside && echo once >> count"}));
    for (Running& each : all) EXPECT_EQ(each.wait().status, 0);
    std::ifstream count(box_.work / "count");
    EXPECT_EQ(std::count(std::istreambuf_iterator<char>(count), {}, '\n'), 6);
}

TEST_F(WorktreeCommand, ALockThatIsHeldIsAConflict) {
    Running running = holder();
    for (const Args& args : {Args{"worktree", "run", "--json", "--", "true"}, Args{"worktree", "snapshot", "--json"}}) {
        const Ended refused = box_.run(args);
        EXPECT_EQ(refused.status, 75) << args[1];
        EXPECT_EQ(refused.code(), "E_LOCK_CONFLICT") << args[1];
    }
    let_go();
    EXPECT_EQ(running.wait().status, 0);
}

TEST_F(WorktreeCommand, AnExpiredLockIsStolenWithAHigherTokenAndTheAuditLogSaysFromWhom) {
    const std::string store = "file:.holdfast/locks";
    const Ended first = box_.run({"acquire", "worktree/main", "--ttl", "100ms", "-s", store, "--json"});
    ASSERT_EQ(first.status, 0) << first.err;
    ASSERT_TRUE(eventually([&] { return status().text("/state") == "expired"; }));
    ASSERT_EQ(box_.run({"worktree", "run", "--wait", "1m", "--", "true"}).status, 0);
    EXPECT_GT(status().number("/fencing_token"), first.json().number("/token"));
    const Ended events = box_.run({"history", "worktree/main", "-s", store, "--json"});
    EXPECT_THAT(events.out, HasSubstr("\"stolen\""));
    EXPECT_THAT(events.out, HasSubstr(first.json().text("/lock_id")));
    EXPECT_EQ(box_.run({"history", "worktree/main", "-s", store, "--verify"}).status, 0);
}

TEST_F(WorktreeCommand, OnlyTheHolderRenewsAndReleases) {
    const std::string store = "file:.holdfast/locks";
    const Ended mine = box_.run({"acquire", "worktree/main", "--ttl", "1h", "-s", store, "--json"});
    const std::string lease = mine.json().text("/lease");
    const std::string forged = mine.json().text("/lock_id") + "." + std::string(32, '0');
    for (const char* verb : {"renew", "release"}) {
        const Ended refused = box_.run({verb, "worktree/main", "-s", store, "--json"}, {{"HOLDFAST_LEASE", forged}});
        EXPECT_EQ(refused.status, 79) << verb;
        EXPECT_EQ(refused.code(), "E_LOCK_NOT_HELD") << verb;
    }
    const std::string before = status().text("/lock/lease_expires_at");
    EXPECT_EQ(box_.run({"renew", "worktree/main", "--ttl", "2h", "-s", store}, {{"HOLDFAST_LEASE", lease}}).status, 0);
    EXPECT_GT(status().text("/lock/lease_expires_at"), before);
    EXPECT_EQ(box_.run({"release", "worktree/main", "-s", store}, {{"HOLDFAST_LEASE", lease}}).status, 0);
    EXPECT_EQ(status().text("/state"), "free");
}

TEST_F(WorktreeCommand, ARenewalThatFailsStopsTheCommand) {
    box_.write(box_.work / "holdfast.toml", "[[policy]]\nmatch = \"worktree/*\"\nmay_unlock = true\n");
    Running running = holder({"--ttl", "10s"});
    const std::string lock_id = status().text("/lock/lock_id");
    ASSERT_EQ(box_.run({"unlock", "worktree/main", "--yes", "--reason", "test", "--expect", lock_id, "-s",
                        "file:.holdfast/locks"})
                  .status,
              0);
    EXPECT_EQ(running.wait().status, 76);
}

TEST_F(WorktreeCommand, ALiveLeaseIsNotTakenAwayUnlessAPolicyAllowsIt) {
    Running running = holder();
    for (const char* store :
         {"file:.holdfast/locks", "file:.holdfast/locks?sync=off", "file:main/../.holdfast/locks/"}) {
        const Ended refused = box_.run({"unlock", "worktree/main", "--yes", "-s", store, "--json"});
        EXPECT_EQ(refused.status, 77) << store;
        EXPECT_EQ(refused.code(), "E_DENIED") << store;
    }
    EXPECT_EQ(status().text("/state"), "held");
    let_go();
    EXPECT_EQ(running.wait().status, 0);
}

TEST_F(WorktreeCommand, ASnapshotJoinsTheLeaseAroundItAndKeepsIt) {
    const Ended ended =
        box_.run({"worktree", "run", "--", box_.program, "worktree", "snapshot", "-m", "joined", "--json"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(history().size("/snapshots"), 1U);
    EXPECT_EQ(history().text("/snapshots/0/message"), "joined");
    EXPECT_EQ(history().number("/snapshots/0/fencing_token"), status().number("/fencing_token"));
}

TEST_F(WorktreeCommand, ASnapshotTakesTheLockAndGivesItBack) {
    const Ended taken = box_.run({"worktree", "snapshot", "-m", "first", "--json"});
    ASSERT_EQ(taken.status, 0) << taken.err << taken.out;
    EXPECT_EQ(taken.json().text("/consistency_level"), "quiesced");
    EXPECT_FALSE(taken.json().has("/warning"));
    EXPECT_EQ(status().text("/state"), "free");
    EXPECT_EQ(status().text("/head"), taken.json().text("/snapshot_id"));
    const Document info = box_.run({"worktree", "info", "--json"}).json();
    EXPECT_EQ(info.text("/snapshot_id"), taken.json().text("/snapshot_id"));
    EXPECT_EQ(info.number("/files"), 5);
}

TEST_F(WorktreeCommand, BestEffortIsMarkedWhereverItIsShown) {
    const Ended taken = box_.run({"worktree", "snapshot", "--consistency", "best_effort", "--json"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    EXPECT_EQ(taken.json().text("/consistency_level"), "best_effort");
    EXPECT_EQ(history().text("/snapshots/0/warning"), "best_effort");
    const Document info = box_.run({"worktree", "info", "--json"}).json();
    EXPECT_EQ(info.text("/warning"), "best_effort");
    EXPECT_EQ(info.text("/consistency_level"), "best_effort");
    EXPECT_THAT(box_.run({"worktree", "history"}).out, HasSubstr("not proved"));
    EXPECT_THAT(box_.run({"worktree", "snapshot", "--consistency", "best_effort"}).err, HasSubstr("warning"));
}

TEST_F(WorktreeCommand, AnUnknownLevelIsAnError) {
    const Ended refused = box_.run({"worktree", "snapshot", "--consistency", "quiesed", "--json"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_EQ(refused.code(), "E_USAGE");
    EXPECT_EQ(history().size("/snapshots"), 0U);
}

TEST_F(WorktreeCommand, ASharedWorktreeNeedsNoLockAndIsMarkedAsAHighRisk) {
    const Ended taken = box_.run({"worktree", "snapshot", "--worktree", "free", "--json"});
    ASSERT_EQ(taken.status, 0) << taken.err;
    EXPECT_TRUE(taken.json().yes("/high_risk"));
    EXPECT_EQ(taken.json().text("/consistency_level"), "quiesced");
    EXPECT_FALSE(taken.json().has("/fencing_token"));
    EXPECT_TRUE(history("free").yes("/high_risk"));
    EXPECT_TRUE(history("free").yes("/snapshots/0/high_risk"));
    EXPECT_TRUE(box_.run({"worktree", "list", "--json"}).json().yes("/worktrees/1/high_risk"));
    EXPECT_FALSE(status().yes("/high_risk"));
    for (const char* verb : {"list", "status", "history", "info", "snapshot"}) {
        Args args{"worktree", verb};
        if (std::string_view(verb) != "list") args.insert(args.end(), {"--worktree", "free"});
        const Ended shown = box_.run(args);
        EXPECT_THAT(shown.out + shown.err, HasSubstr("high risk")) << verb;
    }
    EXPECT_EQ(box_.run({"worktree", "run", "--worktree", "free", "--", "true"}).status, 64);
}

TEST_F(WorktreeCommand, HistoryNeedsNoLock) {
    ASSERT_EQ(box_.run({"worktree", "snapshot"}).status, 0);
    Running running = holder();
    EXPECT_EQ(history().size("/snapshots"), 1U);
    let_go();
    EXPECT_EQ(running.wait().status, 0);
}

TEST_F(WorktreeCommand, ASnapshotWithoutReadyIsNotShownAndIsPartialByName) {
    const std::string id = box_.run({"worktree", "snapshot", "--json"}).json().text("/snapshot_id");
    fs::remove(box_.work / ".holdfast/snapshots" / id / ".READY");
    EXPECT_EQ(history().size("/snapshots"), 0U);
    const Ended refused = box_.run({"worktree", "info", id, "--json"});
    EXPECT_EQ(refused.status, 82);
    EXPECT_EQ(refused.code(), "E_PARTIAL_SNAPSHOT");
}

TEST_F(WorktreeCommand, UnknownNamesHaveTheirOwnStatus) {
    EXPECT_EQ(box_.run({"worktree", "info", "1700000000000-00000000"}).status, 79);
    EXPECT_EQ(box_.run({"worktree", "snapshot", "--worktree", "nobody"}).status, 64);
    EXPECT_EQ(box_.run({"worktree", "info"}).status, 79) << "nothing was kept yet";
}

TEST_F(WorktreeCommand, ATreeThatMovesIsRefusedAndNothingIsLeft) {
    const Ended refused =
        box_.run({"worktree", "snapshot", "--json", "--freeze", "true", "--thaw", "true", "--consistency", "quiesced"});
    ASSERT_EQ(refused.status, 0) << refused.out;
    Running writer = box_.start_program({"/bin/sh", "-c", "while :; do echo x > main/f1; done"});
    ASSERT_TRUE(eventually([&] { return fs::file_size(box_.work / "main/f1") == 2; }));
    // One that happened to run between two writes proves nothing against it.
    std::set<int> seen;
    ASSERT_TRUE(eventually([&] {
        const Ended ended = box_.run({"worktree", "snapshot", "--json"});
        seen.insert(ended.status);
        EXPECT_TRUE(ended.status == 0 || ended.code() == "E_CONSISTENCY_UNAVAILABLE") << ended.out;
        return ended.status == 81;
    }));
    for (const auto& each : fs::directory_iterator(box_.work / ".holdfast/snapshots"))
        EXPECT_THAT(each.path().filename().string(), Not(HasSubstr(".tmp-")));
    EXPECT_TRUE(fs::is_empty(box_.work / ".holdfast/intents"));
}

/// A repository whose first holder is stopped between copy and publication until its lease is over.
class Overtaken {
public:
    Overtaken() {
        EXPECT_EQ(box_.run({"worktree", "init"}).status, 0);
        for (int i = 0; i < 5; ++i) box_.write(box_.work / "main" / fmt::format("f{}", i), fmt::format("{}", i));
        first_.emplace(
            box_.start({"worktree", "snapshot", "-m", "first", "--ttl", "10s", "--json", "--grace", "5m", "--freeze",
                        "true", "--thaw", "touch reached; while [ ! -e go ]; do sleep 0.05; done"}));
    }
    void stop() {
        ASSERT_TRUE(eventually([&] { return fs::exists(box_.work / "reached"); }));
        first_->signal(SIGSTOP);
        ASSERT_TRUE(eventually([&] { return first_->is_stopped(); }));
    }
    /// The next holder publishes as soon as it can.
    void overtake() {
        box_.write(box_.work / "main/f0", "of the second");
        second_.emplace(box_.start({"worktree", "snapshot", "-m", "second", "--wait", "1m", "--json"}));
    }
    void expect_second() {
        const Ended second = second_->wait();
        ASSERT_EQ(second.status, 0) << second.out;
    }
    /// The first goes on, or dies where it is.
    void end(int signal) {
        box_.write(box_.work / "go", "");
        first_->signal(signal);
        const Ended late = first_->wait();
        if (signal == SIGKILL) return;
        EXPECT_EQ(late.status, 80) << late.out;
        EXPECT_EQ(late.code(), "E_FENCING_MISMATCH");
    }
    void expect_only_the_second() {
        const Document history = box_.run({"worktree", "history", "--json"}).json();
        EXPECT_EQ(history.size("/snapshots"), 1U);
        EXPECT_EQ(history.text("/snapshots/0/message"), "second");
        const Ended healed = box_.run({"worktree", "doctor", "--strict", "--fix", "--json"});
        EXPECT_EQ(healed.status, 0) << healed.out << healed.err;
        EXPECT_EQ(std::distance(fs::directory_iterator(box_.work / ".holdfast/snapshots"), {}), 1);
        EXPECT_EQ(std::distance(fs::directory_iterator(box_.work / ".holdfast/descriptors"), {}), 1);
        EXPECT_TRUE(fs::is_empty(box_.work / ".holdfast/intents"));
    }

private:
    Sandbox box_;
    std::optional<Running> first_{};
    std::optional<Running> second_{};
};

TEST(FencedWorktree, AHolderThatWasStoppedBetweenCopyAndPublicationPublishesNothing) {
    // A lease takes its time to run out: several do at once. HOLDFAST_TEST_SCALE=25 makes 200 of them.
    constexpr std::size_t at_once = 8;
    for (int round = 0; round < tests::scaled(1) && !testing::Test::HasFailure(); ++round) {
        std::vector<Overtaken> all(at_once);
        for (Overtaken& each : all) each.stop();
        for (Overtaken& each : all) each.overtake();
        for (Overtaken& each : all) each.expect_second();
        for (std::size_t i = 0; i < all.size(); ++i) all[i].end(i % 2 == 0 ? SIGCONT : SIGKILL);
        for (Overtaken& each : all) each.expect_only_the_second();
    }
}

TEST_F(WorktreeCommand, TheThawRunsAlsoAfterKillNine) {
    // It takes a minute to hash this hole.
    box_.write(box_.work / "main/hole", "");
    fs::resize_file(box_.work / "main/hole", std::uintmax_t{1} << 36);
    Running running =
        box_.start({"worktree", "snapshot", "--freeze", "touch frozen", "--thaw", "touch thawed", "--grace", "10m"});
    ASSERT_TRUE(eventually([&] { return fs::exists(box_.work / "frozen"); }));
    running.signal(SIGKILL);
    static_cast<void>(running.wait());
    EXPECT_TRUE(eventually([&] { return fs::exists(box_.work / "thawed"); }));
}

TEST_F(WorktreeCommand, ASignalEndsASnapshotAndNothingIsLeft) {
    box_.write(box_.work / "main/hole", "");
    fs::resize_file(box_.work / "main/hole", std::uintmax_t{1} << 36);
    Running running =
        box_.start({"worktree", "snapshot", "--freeze", "touch frozen", "--thaw", "touch thawed", "--grace", "10m"});
    ASSERT_TRUE(eventually([&] { return fs::exists(box_.work / "frozen"); }));
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 143);
    EXPECT_TRUE(fs::exists(box_.work / "thawed"));
    EXPECT_EQ(history().size("/snapshots"), 0U);
    EXPECT_TRUE(fs::is_empty(box_.work / ".holdfast/snapshots"));
    EXPECT_TRUE(fs::is_empty(box_.work / ".holdfast/intents"));
    EXPECT_EQ(status().text("/state"), "free");
}

}  // namespace
}  // namespace holdfast::cli_test
