// Goal: what only the file store asks of the system fails without harm: its guard, its listings, and the names that it
// makes. Method: strace has one call fail, or ends the process there, and shows what is forced to the disk.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::MatchesRegex;

class FileFaults : public testing::Test {
protected:
    void SetUp() override {
        if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    }
    [[nodiscard]] std::string url() const { return url_in(folder_.path(), "file"); }
    [[nodiscard]] Call acquire(const LockName& name) const { return {"acquire", url(), name, Credentials::random()}; }

    const TempFolder folder_;
};

// Where locks do not work, nobody can have one.
TEST_F(FileFaults, AGuardThatCannotBeLockedGrantsNothing) {
    must(open_shared(url())->apply_one(by_bob(lock("bystander"), 1h), patient()));
    const Ending ending = run_injected(acquire(lock("target")), {"fcntl", 1}, "error=ENOLCK");
    ASSERT_TRUE(ending.answer);
    EXPECT_FALSE(ending.answer->granted);
    EXPECT_EQ(ending.answer->code, "E_STORE_UNAVAILABLE") << ending.answer->message;
    EXPECT_EQ(must(open_shared(url())->inspect(lock("target"), patient())).seq, 0U);
}

// A queue that cannot be listed is not empty.
TEST_F(FileFaults, TheFirstWaiterIsNotPassedWhenTheQueueCannotBeListed) {
    const auto store = open_shared(url());
    const Acquire obstacle = by_alice(lock("obstacle"), 1h);
    must(store->apply_one(obstacle, patient()));
    Acquire first = queued(by_bob(lock("target"), 1h));
    first.unless_held.push_back(obstacle.name);
    EXPECT_THAT(store->apply_one(first, patient()), RefusedWith(Errc::lock_conflict));
    must(store->apply_one(release(obstacle), patient()));
    const Ending passed = run_injected(acquire(first.name), {"getdents64", 1000}, "error=EIO");
    ASSERT_TRUE(passed.answer);
    EXPECT_EQ(passed.answer->code, "E_LOCK_CONFLICT") << passed.answer->message;
    for (int number = 1; number <= 4; ++number) {
        const Ending ending = run_injected(acquire(first.name), {"getdents64", number}, "error=EIO");
        ASSERT_TRUE(ending.answer);
        EXPECT_FALSE(ending.answer->granted) << number;
    }
}

// Somebody else was faster, or the disk failed.
TEST_F(FileFaults, AStoreThatCannotBeNamedLeavesNothingBehind) {
    for (const char* error : {"error=EEXIST", "error=EIO"}) {
        const Ending ending = run_injected(acquire(lock("target")), {"linkat", 1}, error);
        ASSERT_TRUE(ending.answer);
        EXPECT_FALSE(ending.answer->granted) << error;
        for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
            EXPECT_TRUE(entry.is_directory()) << entry.path();
    }
}

// A ticket goes when its lease is there: a process that dies in between must leave the one or the other.
TEST_F(FileFaults, AWaiterThatIsKilledWhileItTakesTheLockKeepsItsPlaceOrHasTheLock) {
    const auto store = open_shared(url());
    const Acquire obstacle = by_alice(lock("obstacle"), 1h);
    must(store->apply_one(obstacle, patient()));
    int kept = 0;
    for (const auto& [syscall, last] : {std::pair{"renameat", 1}, std::pair{"unlinkat", 2}})
        for (int number = 1; number <= last; ++number) {
            Acquire first = queued(by_bob(lock(std::string(syscall) + std::to_string(number)), 1h));
            Acquire with_exclusion = first;
            with_exclusion.unless_held.push_back(obstacle.name);
            EXPECT_THAT(store->apply_one(with_exclusion, patient()), RefusedWith(Errc::lock_conflict));
            static_cast<void>(run_injected({"acquire", url(), first.name, first.as}, {syscall, number}, "signal=KILL"));
            const LockStatus status = must(store->inspect(first.name, patient()));
            EXPECT_TRUE(status.state == LockState::held || status.waiters == 1) << syscall << " " << number;
            if (status.state != LockState::held) ++kept;
        }
    EXPECT_GT(kept, 0) << "nobody was killed before the lock was its own";
}

// After a power cut a folder has what was forced to the disk in it, and nothing else.
TEST_F(FileFaults, EveryNewNameIsForcedToTheDiskByTheFirstUse) {
    const fs::path store = folder_.path() / "deep" / "er" / "store";
    const Call call{"acquire", "file:" + store.string(), lock("target"), Credentials::random()};
    const std::vector<std::string> synced = synced_paths(call);
    const std::vector<fs::path> expected{folder_.path(),
                                         folder_.path() / "deep",
                                         folder_.path() / "deep" / "er",
                                         store / ".format-.*",
                                         store,
                                         store / "locks",
                                         store,
                                         store / "locks/n.target/record.tmp",
                                         store / "locks/n.target",
                                         store};
    ASSERT_EQ(synced.size(), expected.size()) << testing::PrintToString(synced);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_THAT(synced[i], MatchesRegex(expected[i].string())) << i;
}

}  // namespace
}  // namespace holdfast::tests
