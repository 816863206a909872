// Goal: whoever was brought to rest is let go, whatever becomes of the process that asked for it.
#include "guards/worktree/freeze.hpp"

#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class FreezeTest : public testing::Test {
protected:
    Freeze::Options options(std::chrono::milliseconds grace = 60s) const {
        return {"touch '" + frozen_.string() + "'", "touch '" + thawed_.string() + "'", grace};
    }
    bool is_thawed_soon() const {
        for (int look = 0; look < 3000 && !fs::exists(thawed_); ++look) std::this_thread::sleep_for(10ms);
        return fs::exists(thawed_);
    }
    /// A process that freezes, and says through the file that it has.
    pid_t freezing_process(std::chrono::milliseconds grace = 60s) const {
        const pid_t child = fork();
        if (child == 0) {
            const auto frozen = Freeze::begin(options(grace));
            for (;;) pause();
        }
        return child;
    }
    bool is_frozen_soon() const {
        for (int look = 0; look < 3000 && !fs::exists(frozen_); ++look) std::this_thread::sleep_for(10ms);
        return fs::exists(frozen_);
    }

    tests::TempFolder folder_;
    fs::path frozen_ = folder_.path() / "frozen";
    fs::path thawed_ = folder_.path() / "thawed";
};

TEST_F(FreezeTest, ThawsWhenItIsTold) {
    auto frozen = Freeze::begin(options());
    ASSERT_TRUE(frozen) << frozen.error().message;
    EXPECT_TRUE(fs::exists(frozen_));
    EXPECT_FALSE(fs::exists(thawed_));
    EXPECT_TRUE(frozen->thaw());
    EXPECT_TRUE(fs::exists(thawed_));
}

TEST_F(FreezeTest, ThawsAtTheEndOfItsScope) {
    {
        const auto frozen = Freeze::begin(options());
    }
    EXPECT_TRUE(fs::exists(thawed_));
}

TEST_F(FreezeTest, ThawsWhenItsProcessIsKilled) {
    const pid_t child = freezing_process();
    ASSERT_TRUE(is_frozen_soon());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_thawed_soon());
}

TEST_F(FreezeTest, ThawsWhenItsProcessIsStoppedForLongerThanTheGrace) {
    const pid_t child = freezing_process(500ms);
    ASSERT_TRUE(is_frozen_soon());
    kill(child, SIGSTOP);
    EXPECT_TRUE(is_thawed_soon());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST_F(FreezeTest, ThatFailsIsRefusedAndThawsNothing) {
    auto failing = options();
    failing.freeze = "exit 3";
    const auto frozen = Freeze::begin(failing);
    ASSERT_FALSE(frozen);
    EXPECT_EQ(frozen.error().code, Errc::consistency_unavailable);
    EXPECT_FALSE(fs::exists(thawed_));
}

TEST_F(FreezeTest, AThawThatFailsIsTold) {
    auto failing = options();
    failing.thaw = "exit 3";
    auto frozen = Freeze::begin(failing);
    ASSERT_TRUE(frozen);
    const auto thawed = frozen->thaw();
    ASSERT_FALSE(thawed);
    EXPECT_NE(thawed.error().message.find("status 3"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::guards::worktree
