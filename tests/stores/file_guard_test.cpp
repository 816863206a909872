// Goal: time that passes, and files that vanish, while a change waits for its lock's guard, or in the middle of a list,
// do no harm. Method: a clock that lets things happen when the store looks at it, which a change does for the first
// time when it finds the guard taken.

#include "base/file_lock.hpp"
#include "file_fixture.hpp"

#include <fcntl.h>
#include <optional>

namespace holdfast::stores::file {
namespace {

/// A guard that somebody else has locked.
struct Taken {
    explicit Taken(const std::filesystem::path& guard)
        : fd(::open(guard.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)),
          lock(base::FileLock::take(fd.get(), host_clock(), Deadline::never()).value()) {}
    base::Fd fd;
    base::FileLock lock;
};

class FileGuard : public FileStoreTest {
protected:
    void SetUp() override {
        store_ = try_open(watched_).value();
        static_cast<void>(granted(*store_, holder_));
        static_cast<void>(granted(*store_, Release{holder_.name, holder_.as}));
        other_.emplace(guard());
    }
    [[nodiscard]] std::filesystem::path guard() const { return folder_of("x") / "guard"; }

    WatchedClock watched_;
    std::unique_ptr<Store> store_;
    const Acquire holder_ = acquire_of("x", Credentials::random());
    std::optional<Taken> other_;
};

TEST_F(FileGuard, TimeThatPassedWhileItWasWaitedForCounts) {
    int looks = 0;
    watched_.on_look = [&] {
        // Late enough to be waiting, whatever was looked at before.
        if (!other_ || ++looks < 8) return;
        watched_.manual.advance(1h);
        other_.reset();
    };
    const Outcome outcome = granted(*store_, acquire_of("x", Credentials::random(), 30s));
    EXPECT_FALSE(other_) << "nobody waited";
    EXPECT_EQ(outcome.lock.lease->expires_at, watched_.manual.wall() + 30s);
}

TEST_F(FileGuard, ThatWasRemovedWhileItWasWaitedForExcludesNobodyAndIsTakenAnew) {
    std::optional<Taken> next;
    int looks = 0;
    bool came_too_early = false;
    watched_.on_look = [&] {
        if (++looks == 1) {
            std::filesystem::remove(guard());
            next.emplace(guard());
            other_.reset();
        }
        // Late enough to be waiting for the new one.
        if (looks == 8) next.reset();
    };
    watched_.on_wall = [&] { came_too_early = came_too_early || next; };
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random())));
    EXPECT_FALSE(came_too_early);
    EXPECT_FALSE(next) << "nobody waited for the new guard";
}

TEST_F(FileGuard, OfALockThatIsOnlyLookedAtIsKeptUntilTheOtherIsDecided) {
    other_.reset();
    int decided = 0;
    watched_.on_wall = [&] {
        ++decided;
        const base::Fd fd(::open(guard().c_str(), O_RDWR | O_CLOEXEC));
        EXPECT_FALSE(base::FileLock::take(fd.get(), host_clock(), Deadline::in(host_clock(), 1ms)));
    };
    Acquire unless_x = acquire_of("y", Credentials::random());
    unless_x.unless_held.push_back(holder_.name);
    static_cast<void>(granted(*store_, unless_x));
    EXPECT_GT(decided, 0);
}

TEST_F(FileGuard, OfALockThatWasNeverUsedAndIsOnlyLookedAtIsTakenToo) {
    int decided = 0;
    watched_.on_wall = [&] {
        ++decided;
        const base::Fd fd(::open((folder_of("never/used") / "guard").c_str(), O_RDWR | O_CLOEXEC));
        ASSERT_TRUE(fd);
        EXPECT_FALSE(base::FileLock::take(fd.get(), host_clock(), Deadline::in(host_clock(), 1ms)));
    };
    Acquire unless_used = acquire_of("y", Credentials::random());
    unless_used.unless_held.push_back(lock_name("never/used"));
    static_cast<void>(granted(*store_, unless_used));
    EXPECT_GT(decided, 0);
}

// Otherwise two batches could each have the guard that the other one waits for.
TEST_F(FileGuard, IsWaitedForBeforeThatOfALaterNameIsTakenWhateverIsAskedOfThem) {
    const Acquire later = acquire_of("y", Credentials::random());
    other_.reset();
    static_cast<void>(granted(*store_, later));
    Acquire unless_x = later;
    unless_x.unless_held.push_back(lock_name("x"));
    const std::vector<std::vector<Request>> batches{{later, Release{holder_.name, holder_.as}},
                                                    {Release{later.name, later.as}, holder_},
                                                    {later, holder_},
                                                    {unless_x},
                                                    {Release{later.name, later.as}, Release{holder_.name, holder_.as}}};
    for (const auto& batch : batches) {
        SCOPED_TRACE(&batch - batches.data());
        other_.emplace(guard());
        watched_.on_look = [&] {
            if (!other_) return;
            const base::Fd fd(::open((folder_of("y") / "guard").c_str(), O_RDWR | O_CLOEXEC));
            EXPECT_TRUE(base::FileLock::take(fd.get(), host_clock(), Deadline::in(host_clock(), 200ms)));
            other_.reset();
        };
        ASSERT_TRUE(store_->apply(batch, Deadline::never()));
        EXPECT_FALSE(other_) << "nobody waited";
        watched_.on_look = nullptr;
    }
}

TEST_F(FileGuard, AListAndAHistoryThatRunOutOfTimeAreNotCutShort) {
    other_.reset();
    for (const char* name : {"y", "z"}) static_cast<void>(granted(*store_, acquire_of(name, Credentials::random())));
    int looks_left = 0;
    watched_.on_look = [&] {
        if (looks_left-- == 0) watched_.manual.advance(1h);
    };
    const auto late_at = [&](int look) {
        looks_left = look;
        return Deadline{watched_.manual.boottime() + 1min};
    };
    int cut_off = 0;
    for (int look = 0; look < 20; ++look) {
        SCOPED_TRACE(look);
        const auto list = store_->list({.with_free = true}, late_at(look));
        EXPECT_EQ(list ? list->size() : 3U, 3U);
        const auto events = store_->history({}, late_at(look));
        EXPECT_EQ(events ? events->size() : 4U, 4U);
        if (!list && !events) ++cut_off;
    }
    EXPECT_GT(cut_off, 0) << "time never ran out";
}

}  // namespace
}  // namespace holdfast::stores::file
