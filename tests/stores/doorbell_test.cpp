// Goal: a ring reaches the waiter whose ticket it is for, through one descriptor however many wait, and can neither
// block nor end the process that rings.

#include "base/doorbell.hpp"

#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>

namespace holdfast::tests {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DoorbellTest : public testing::Test {
protected:
    void hang(const LockId& ticket) { must(bell_.hang(bells_, ticket)); }
    [[nodiscard]] std::vector<LockId> rung() {
        const base::Doorbell::Rings rings = bell_.take_rings();
        EXPECT_FALSE(rings.for_all);
        return rings.called;
    }
    [[nodiscard]] std::string path_of(const LockId& ticket) const { return bells_.path_of(ticket); }
    /// As a build does that knows of one pipe for each waiter.
    void ring_without_saying_for_whom(const LockId& ticket) const {
        const base::Fd pipe(open(path_of(ticket).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        ASSERT_EQ(write(pipe.get(), "!", 1), 1);
    }

    TempFolder folder_;
    const base::Doorbells bells_{(folder_.path() / "bells").string()};
    base::Doorbell bell_;
    const LockId mine_ = Credentials::random().lock_id;
    const LockId other_ = Credentials::random().lock_id;
};

TEST_F(DoorbellTest, ARingSaysForWhomItIsAndIsTakenOnce) {
    hang(mine_);
    hang(other_);
    EXPECT_THAT(rung(), IsEmpty());
    bells_.ring(mine_);
    EXPECT_THAT(rung(), ElementsAre(mine_));
    EXPECT_THAT(rung(), IsEmpty());
    bells_.ring(other_);
    bells_.ring(mine_);
    EXPECT_THAT(rung(), ElementsAre(other_, mine_));
}

TEST_F(DoorbellTest, AThousandBellsNeedOneDescriptorAlsoInSeveralFolders) {
    const base::Doorbells elsewhere((folder_.path() / "elsewhere").string());
    std::vector<LockId> tickets;
    for (int i = 0; i < 1000; ++i) {
        tickets.push_back(Credentials::random().lock_id);
        must(bell_.hang(i % 2 == 0 ? bells_ : elsewhere, tickets.back()));
    }
    EXPECT_EQ(bell_.descriptors().size(), 1U);
    for (std::size_t i = 0; i < tickets.size(); ++i) (i % 2 == 0 ? bells_ : elsewhere).ring(tickets[i]);
    auto all = rung();
    std::ranges::sort(all);
    std::ranges::sort(tickets);
    EXPECT_EQ(all, tickets);
}

TEST_F(DoorbellTest, AFolderThatIsNotThereYetNeedsNoDescriptorOfItsOwn) {
    for (int i = 0; i < 10; ++i)
        must(bell_.hang(base::Doorbells((folder_.path() / std::to_string(i)).string()), Credentials::random().lock_id));
    EXPECT_EQ(bell_.descriptors().size(), 1U);
}

// Whoever breaks a lock rings its holder and removes the bell.
TEST_F(DoorbellTest, ARingIsNotLostWithItsBellWhenAnotherIsHung) {
    hang(mine_);
    bells_.ring(mine_);
    bells_.take_down(mine_);
    hang(other_);
    EXPECT_THAT(rung(), ElementsAre(mine_));
}

TEST_F(DoorbellTest, ABellCanBeHungAgainAndAgain) {
    for (int i = 0; i < 100; ++i) {
        hang(mine_);
        hang(other_);
    }
    EXPECT_EQ(bell_.descriptors().size(), 1U);
    bells_.ring(mine_);
    EXPECT_THAT(rung(), ElementsAre(mine_));
}

TEST_F(DoorbellTest, BellsThatComeAndGoDoNotUseUpDescriptors) {
    for (int i = 0; i < 100; ++i) {
        const LockId ticket = Credentials::random().lock_id;
        hang(ticket);
        bells_.ring(ticket);
        EXPECT_THAT(rung(), ElementsAre(ticket));
        bells_.take_down(ticket);
    }
    EXPECT_LE(bell_.descriptors().size(), 1U);
    EXPECT_TRUE(std::filesystem::is_empty(bells_.folder()));
}

TEST_F(DoorbellTest, ARingOfAnOlderBuildIsForAll) {
    hang(mine_);
    hang(other_);
    ring_without_saying_for_whom(other_);
    EXPECT_TRUE(bell_.take_rings().for_all);
    bells_.ring(mine_);
    ring_without_saying_for_whom(other_);
    const auto rings = bell_.take_rings();
    EXPECT_TRUE(rings.for_all);
    EXPECT_THAT(rings.called, ElementsAre(mine_));
}

TEST_F(DoorbellTest, TwoListenersAtOneTicketBothUseTheBellThatHangs) {
    base::Doorbell second;
    hang(mine_);
    must(second.hang(bells_, mine_));
    bells_.ring(mine_);
    EXPECT_THAT(second.take_rings().called, ElementsAre(mine_));
}

TEST_F(DoorbellTest, ABellOfOnesOwnIsNotSharedWithSomebodyElse) {
    base::Doorbell second;
    must(bell_.hang_own(bells_, mine_));
    EXPECT_FALSE(second.hang_own(bells_, mine_));
    must(second.hang_own(bells_, other_));
    must(bell_.hang_own(bells_, mine_));
    bells_.ring(mine_);
    EXPECT_THAT(second.take_rings().called, IsEmpty());
    EXPECT_THAT(rung(), ElementsAre(mine_));
}

TEST_F(DoorbellTest, ABellThatNobodyListensAtForgets) {
    must(base::Doorbell().hang(bells_, mine_));
    bells_.ring(mine_);
    hang(mine_);
    EXPECT_THAT(rung(), IsEmpty());
}

TEST_F(DoorbellTest, RingingNeitherBlocksNorEndsWhoeverRings) {
    std::signal(SIGPIPE, SIG_DFL);
    bells_.ring(mine_);
    hang(mine_);
    // More than a pipe holds, so that some are lost.
    for (int i = 0; i < 3'000; ++i) bells_.ring(mine_);
    EXPECT_TRUE(bell_.take_rings().for_all);
    bells_.take_down(mine_);
    bells_.ring(mine_);
    EXPECT_TRUE(std::filesystem::is_empty(bells_.folder()));
}

TEST_F(DoorbellTest, BellsBelongToTheirOwnerAlone) {
    // Which takes away what the owner needs, too.
    const mode_t usual = umask(0777);
    const auto hung = bell_.hang(bells_, mine_);
    umask(usual);
    ASSERT_THAT(hung, Granted());
    struct stat info{};
    ASSERT_EQ(stat(path_of(mine_).c_str(), &info), 0);
    EXPECT_TRUE(S_ISFIFO(info.st_mode));
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    ASSERT_EQ(stat(bells_.folder().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(DoorbellTest, AFileOrALinkInItsPlaceIsNoBellAndIsNotWrittenTo) {
    std::filesystem::create_directory(bells_.folder());
    const std::string file = path_of(mine_);
    std::ofstream(file) << "content";
    std::filesystem::create_symlink(file, path_of(other_));
    EXPECT_THAT(bell_.hang(bells_, mine_), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(bell_.hang(bells_, other_), RefusedWith(Errc::store_unavailable));
    bells_.ring(mine_);
    bells_.ring(other_);
    EXPECT_EQ(std::filesystem::file_size(file), 7U);
}

}  // namespace
}  // namespace holdfast::tests
