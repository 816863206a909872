// Goal: a ticket or a lease of a process that lives is never taken for abandoned, whatever happens to files and
// descriptors; that of a dead one is, unless there is doubt. Method: Presence objects beside each other, which is how
// processes see each other, and forked children where a process has to die.
#include "base/presence.hpp"

#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;
using base::Bond;
using base::Presence;
using base::Presences;
using testing::ElementsAre;
using testing::IsEmpty;

class PresenceTest : public testing::Test {
protected:
    [[nodiscard]] bool is_gone(const LockId& id, Bond bond = Bond::ticket) const { return all_.is_gone(id, bond); }
    [[nodiscard]] fs::path path_of(const LockId& id, Bond bond = Bond::ticket) const { return all_.path_of(id, bond); }
    [[nodiscard]] fs::path folder() const { return all_.folder(); }
    [[nodiscard]] std::vector<std::string> names(const std::string& ending) const {
        std::vector<std::string> found;
        if (!fs::exists(folder())) return found;
        for (const auto& entry : fs::directory_iterator(folder()))
            if (entry.path().extension() == ending) found.push_back(entry.path().string());
        return found;
    }
    /// A process that binds this, and is killed.
    void bind_and_die(const LockId& id, Bond bond = Bond::ticket) const {
        Process process = Process::fork([&] {
            Presence own(all_);
            must(own.bind(id, bond));
            kill(getpid(), SIGKILL);
            return 0;
        });
        ASSERT_EQ(process.wait(), Exit{.signal = SIGKILL});
    }

    TempFolder temp_;
    const Presences all_{(temp_.path() / "presence").string(), Presences::Locks::seen_by_all};
    const LockId id_ = LockId::random();
};

TEST_F(PresenceTest, OfADeadProcessIsSeenToBeGone) {
    EXPECT_FALSE(is_gone(id_)) << "nothing is known of it";
    bind_and_die(id_);
    EXPECT_TRUE(is_gone(id_));
    EXPECT_FALSE(is_gone(id_, Bond::session)) << "that was never bound";
    all_.forget(id_, Bond::ticket);
    EXPECT_FALSE(is_gone(id_));
}

TEST_F(PresenceTest, OfAThousandTicketsNeedsOneDescriptor) {
    Presence own(all_);
    std::vector<LockId> ids;
    for (int i = 0; i < 1000; ++i) must(own.bind(ids.emplace_back(LockId::random()), Bond::ticket));
    EXPECT_EQ(names(".process").size(), 1U);
    for (const LockId& id : ids) EXPECT_FALSE(is_gone(id));
}

TEST_F(PresenceTest, EndsSessionsWhenItEndsAndLeavesTicketsToTheirTime) {
    const LockId session = LockId::random();
    {
        Presence own(all_);
        must(own.bind(id_, Bond::ticket));
        must(own.bind(session, Bond::session));
        EXPECT_FALSE(is_gone(session, Bond::session));
    }
    EXPECT_TRUE(is_gone(session, Bond::session));
    EXPECT_FALSE(is_gone(id_)) << "its owner may go on with another Store object";
    EXPECT_THAT(names(".process"), IsEmpty());
}

TEST_F(PresenceTest, OfTheProcessThatBoundLastCounts) {
    bind_and_die(id_);
    Presence own(all_);
    must(own.bind(id_, Bond::ticket));
    EXPECT_FALSE(is_gone(id_));
    bind_and_die(id_);
    EXPECT_TRUE(is_gone(id_));
    must(own.bind(id_, Bond::ticket));
    EXPECT_FALSE(is_gone(id_));
    EXPECT_THAT(names(".new"), IsEmpty());
}

TEST_F(PresenceTest, GoesOnWhenAForkedProcessEndsItsCopy) {
    std::optional<Presence> own(std::in_place, all_);
    must(own->bind(id_, Bond::ticket));
    must(own->bind(id_, Bond::session));
    Process child = Process::fork([&] {
        own.reset();
        return 0;
    });
    ASSERT_EQ(child.wait(), Exit{.status = 0});
    EXPECT_FALSE(is_gone(id_));
    EXPECT_FALSE(is_gone(id_, Bond::session));
    EXPECT_THAT(names(".ticket"), ElementsAre(path_of(id_).string()));
    EXPECT_EQ(names(".process").size(), 1U);
}

TEST_F(PresenceTest, GoesOnAsLongAsACopyOfItsDescriptorIsOpen) {
    std::optional<Presence> own(std::in_place, all_);
    EXPECT_EQ(own->duplicate(), std::nullopt);
    must(own->bind(id_, Bond::session));
    base::Fd copy(own->duplicate().value());
    own.reset();
    EXPECT_FALSE(is_gone(id_, Bond::session));
    copy.reset();
    EXPECT_TRUE(is_gone(id_, Bond::session));
}

// Old bonds stay, and so do new ones.
TEST_F(PresenceTest, IsMadeAgainWhenSomebodyRemovesItsName) {
    Presence own(all_);
    must(own.bind(id_, Bond::session));
    for (const std::string& name : names(".process")) fs::remove(name);
    const LockId second = LockId::random();
    must(own.bind(second, Bond::session));
    EXPECT_FALSE(is_gone(id_, Bond::session));
    EXPECT_FALSE(is_gone(second, Bond::session));
    fs::remove_all(folder());
    EXPECT_FALSE(is_gone(id_, Bond::session)) << "without a file the ttl decides";
    must(own.bind(id_, Bond::session));
    EXPECT_FALSE(is_gone(id_, Bond::session));
}

// As daemons do that close whatever they have not opened themselves.
TEST_F(PresenceTest, IsMadeAgainWhenSomebodyClosesItsDescriptor) {
    Process child = Process::fork([&] {
        Presence own(all_);
        must(own.bind(id_, Bond::ticket));
        for (int fd = 3; fd < 64; ++fd) close(fd);
        // A file of the program's gets the number.
        const base::Fd other(open("/dev/null", O_RDONLY | O_CLOEXEC));
        must(own.bind(id_, Bond::ticket));
        const bool lives = !is_gone(id_);
        return lives && fcntl(other.get(), F_GETFD) >= 0 ? 0 : 1;
    });
    EXPECT_EQ(child.wait(), Exit{.status = 0});
}

TEST_F(PresenceTest, OfACopyOfTheFolderSaysNothing) {
    Presence own(all_);
    must(own.bind(id_, Bond::session));
    const fs::path copy = temp_.path() / "copy";
    fs::copy(folder(), copy, fs::copy_options::recursive);
    EXPECT_FALSE(Presences(copy.string(), Presences::Locks::seen_by_all).is_gone(id_, Bond::session));
    fs::rename(folder(), temp_.path() / "old");
    fs::rename(copy, folder());
    EXPECT_FALSE(is_gone(id_, Bond::session)) << "its process lives, and has the file of the old folder locked";
}

TEST_F(PresenceTest, ThatOthersCouldHaveWrittenSaysNothing) {
    bind_and_die(id_);
    chmod(path_of(id_).c_str(), 0622);
    EXPECT_FALSE(is_gone(id_));
    chmod(path_of(id_).c_str(), 0600);
    EXPECT_TRUE(is_gone(id_));
    const fs::path elsewhere = temp_.path() / "elsewhere";
    fs::rename(path_of(id_), elsewhere);
    fs::create_symlink(elsewhere, path_of(id_));
    EXPECT_FALSE(is_gone(id_)) << "a symbolic link";
    fs::remove(path_of(id_));
    std::ofstream(path_of(id_)) << "holdfast presence 1 2\n";
    EXPECT_FALSE(is_gone(id_)) << "its content is wrong";
}

TEST_F(PresenceTest, OfAnotherUserSaysNothingAndNothingIsPutThere) {
    if (!can_give_away()) GTEST_SKIP() << not_here << "files cannot be given to another user";
    bind_and_die(id_);
    constexpr uid_t somebody = 4711;
    for (const auto& entry : fs::directory_iterator(folder()))
        ASSERT_EQ(chown(entry.path().c_str(), somebody, somebody), 0);
    EXPECT_FALSE(is_gone(id_));
    ASSERT_EQ(chown(folder().c_str(), somebody, somebody), 0);
    Presence own(all_);
    EXPECT_THAT(own.bind(LockId::random(), Bond::ticket), RefusedWith(Errc::store_unsafe));
}

TEST_F(PresenceTest, WhereLocksAreNotTrustedIsNeitherMadeNorBelieved) {
    bind_and_die(id_);
    const Presences network(folder().string(), Presences::Locks::not_trusted);
    EXPECT_FALSE(network.is_gone(id_, Bond::ticket));
    Presence own(network);
    EXPECT_THAT(own.bind(LockId::random(), Bond::ticket), RefusedWith(Errc::store_unsafe));
    EXPECT_EQ(names(".process").size(), 1U);
}

// An error must not let the ticket end with the process that had it before.
TEST_F(PresenceTest, ThatCannotBeBoundIsNotThatOfADeadProcess) {
    bind_and_die(id_);
    Presence own(all_);
    ASSERT_TRUE(own.bind(LockId::random(), Bond::ticket)) << "a file of its own";
    ASSERT_TRUE(is_gone(id_));
    // No other name can be made to take the place of the old one.
    for (const std::string& name : names(".process")) fs::create_directory(name + ".new");
    EXPECT_FALSE(own.bind(id_, Bond::ticket));
    EXPECT_FALSE(is_gone(id_));
}

TEST_F(PresenceTest, WhatKilledProcessesLeaveIsRemovedByThoseThatCome) {
    for (int i = 0; i < 8; ++i) bind_and_die(LockId::random());
    Presence lives(all_);
    must(lives.bind(id_, Bond::ticket));
    EXPECT_EQ(names(".process").size(), 1U);
    EXPECT_EQ(names(".ticket").size(), 9U) << "those are still to be found abandoned";
    for (int i = 0; i < 8; ++i) {
        Presence own(all_);
        must(own.bind(LockId::random(), Bond::session));
        EXPECT_EQ(names(".process").size(), 2U) << "a file that is locked stays";
    }
}

}  // namespace
}  // namespace holdfast::tests
