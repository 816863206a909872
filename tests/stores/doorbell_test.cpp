// Goal: a ring wakes the one who waits at that bell, and can neither block nor end who rings.

#include "base/doorbell.hpp"

#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/stat.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class DoorbellTest : public testing::Test {
protected:
    [[nodiscard]] static bool was_rung(const base::Doorbell& bell) {
        return bell.wait(host_clock(), Deadline::in(host_clock(), 1ms), {});
    }

    TempFolder folder_;
    const std::string place_ = (folder_.path() / "bells").string();
    const base::Doorbells bells_{place_};
    const LockId mine_ = Credentials::random().lock_id;
    const LockId other_ = Credentials::random().lock_id;
};

TEST_F(DoorbellTest, ARingIsHeardByItsOwnerAloneAndOnce) {
    const auto mine = must(bells_.hang(mine_));
    const auto other = must(bells_.hang(other_));
    bells_.ring(mine_);
    bells_.ring(mine_);
    EXPECT_TRUE(was_rung(mine));
    EXPECT_FALSE(was_rung(mine));
    EXPECT_FALSE(was_rung(other));
}

TEST_F(DoorbellTest, ARingWakesWhoSleeps) {
    const auto bell = must(bells_.hang(mine_));
    const std::jthread ringer([&] { bells_.ring(mine_); });
    EXPECT_TRUE(bell.wait(host_clock(), Deadline::never(), {}));
}

TEST_F(DoorbellTest, AStopEndsTheSleep) {
    const auto bell = must(bells_.hang(mine_));
    std::stop_source stop;
    const std::jthread stopper([&] { stop.request_stop(); });
    EXPECT_FALSE(bell.wait(host_clock(), Deadline::never(), stop.get_token()));
}

TEST_F(DoorbellTest, ABellThatNobodyWaitsAtForgets) {
    static_cast<void>(must(bells_.hang(mine_)));
    bells_.ring(mine_);
    EXPECT_FALSE(was_rung(must(bells_.hang(mine_))));
}

TEST_F(DoorbellTest, RingingNeitherBlocksNorEndsWhoRings) {
    std::signal(SIGPIPE, SIG_DFL);
    bells_.ring(mine_);
    const auto bell = must(bells_.hang(mine_));
    // More than a pipe holds.
    for (int i = 0; i < 70'000; ++i) bells_.ring(mine_);
    EXPECT_TRUE(was_rung(bell));
    bells_.take_down(mine_);
    bells_.ring(mine_);
    EXPECT_TRUE(std::filesystem::is_empty(place_));
}

TEST_F(DoorbellTest, BellsBelongToTheirOwnerAlone) {
    // Which takes away what the owner needs, too.
    const mode_t usual = umask(0777);
    const auto bell = bells_.hang(mine_);
    umask(usual);
    ASSERT_THAT(bell, Granted());
    struct stat info{};
    ASSERT_EQ(stat((place_ + "/" + mine_.text()).c_str(), &info), 0);
    EXPECT_TRUE(S_ISFIFO(info.st_mode));
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    ASSERT_EQ(stat(place_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(DoorbellTest, AFileOrALinkInItsPlaceIsNoBellAndIsNotWrittenTo) {
    std::filesystem::create_directory(place_);
    const std::string file = place_ + "/" + mine_.text();
    std::ofstream(file) << "content";
    std::filesystem::create_symlink(file, place_ + "/" + other_.text());
    EXPECT_THAT(bells_.hang(mine_), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(bells_.hang(other_), RefusedWith(Errc::store_unavailable));
    bells_.ring(mine_);
    bells_.ring(other_);
    EXPECT_EQ(std::filesystem::file_size(file), 7U);
}

}  // namespace
}  // namespace holdfast::tests
