// Retention from the command line.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace holdfast::cli_test {
namespace {

class PruneCommand : public testing::Test {
protected:
    void SetUp() override {
        for (int i = 0; i < 3; ++i) ASSERT_EQ(box.run({"run", "a", "--", "true"}).status, 0);
        ASSERT_EQ(box.run({"acquire", "b"}).status, 0);
    }
    std::int64_t verified() { return box.run({"history", "--verify", "--json"}).json().number("/verified"); }

    Sandbox box;
};

TEST_F(PruneCommand, WithoutATimeNinetyDaysStay) {
    const auto nothing = box.run({"prune"});
    EXPECT_EQ(nothing.status, 0);
    EXPECT_EQ(nothing.out, "0 events of 0 locks were removed; those of the last 90 d stay\n");
    EXPECT_EQ(verified(), 7);
}

TEST_F(PruneCommand, RemovesWhatIsOlderAndTheRestVerifies) {
    const auto pruned =
        box.run({"prune", "--keep", "0", "--reason", "disk is full", "--holder", "cron", "--json"}).json();
    EXPECT_EQ(pruned.number("/pruned"), 5);
    EXPECT_EQ(pruned.number("/locks"), 1);
    EXPECT_FALSE(pruned.yes("/dry_run"));
    EXPECT_EQ(verified(), 3);
    const auto events = box.run({"history", "a", "--json"}).json();
    EXPECT_EQ(events.number("/events/0/seq"), 6);
    EXPECT_EQ(events.text("/events/1/event"), "pruned");
    EXPECT_EQ(events.text("/events/1/actor"), "cron");
    EXPECT_EQ(events.text("/events/1/reason"), "disk is full");
    EXPECT_EQ(events.text("/events/1/details/through"), "5");
    EXPECT_THAT(box.run({"history", "a"}).out, testing::HasSubstr("pruned"));
}

TEST_F(PruneCommand, ADryRunOnlyCounts) {
    const auto counted = box.run({"prune", "--keep", "0", "--dry-run", "--json"}).json();
    EXPECT_EQ(counted.number("/pruned"), 5);
    EXPECT_TRUE(counted.yes("/dry_run"));
    EXPECT_EQ(verified(), 7);
}

// Others hold the gate, so that the signal comes while there is work left.
TEST_F(PruneCommand, ThatIsInterruptedEndsWithTheSignalsStatusAndWhatItDidIsWhole) {
    const std::filesystem::path gate = box.state / "holdfast" / "holdfast.db-gate";
    const int fd = open(gate.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << gate;
    struct flock lock{};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &lock), 0);
    auto pruning = box.start({"prune", "--keep", "0", "--json"});
    // The database too: until it has become the program, it has this test's own descriptor of the gate.
    ASSERT_TRUE(
        eventually([&] { return pruning.has_open(box.state / "holdfast" / "holdfast.db") && pruning.has_open(gate); }));
    pruning.signal(SIGTERM);
    ASSERT_TRUE(eventually([&] { return !pruning.has_pending(SIGTERM); }));
    moment();
    close(fd);
    const auto ended = pruning.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM);
    EXPECT_EQ(ended.json().number("/pruned"), 5) << "the batch that was under way was finished";
    EXPECT_EQ(verified(), 3);
}

TEST_F(PruneCommand, ARefusedActorIsReported) {
    const auto refused = box.run({"prune", "--keep", "0", "--holder", std::string(2000, 'x'), "--json"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_EQ(refused.code(), "E_USAGE");
    EXPECT_EQ(verified(), 7);
}

TEST_F(PruneCommand, ATimeThatIsNoneIsRefused) {
    EXPECT_EQ(box.run({"prune", "--keep", "tomorrow", "--json"}).code(), "E_USAGE");
    EXPECT_EQ(verified(), 7);
}

}  // namespace
}  // namespace holdfast::cli_test
