// Goal: a wait in a file store ends when it should, at whatever moment the reason comes, and whatever wakes it is lost.
// Method: a clock that lets things happen when the waiter looks at it; and what a waiter looks with, by itself.

#include "file_fixture.hpp"
#include "stores/file/wait.hpp"

#include <stop_token>

namespace holdfast::stores::file {
namespace {

/// So often a waiter looks at the clock before it sleeps for the first time, at least: with a ticket, and without.
constexpr int looks_in_line = 9;
constexpr int looks_without_ticket = 4;

class FileWaiting : public FileStoreTest {
protected:
    void SetUp() override { use(dir().string()); }

    /// Begins again with a store in this folder.
    void use(const std::string& folder) {
        const auto open_with = [&](const Clock& clock) {
            return open_file_store(*base::Url::parse("file:" + folder + "?sync=off"), clock).value();
        };
        store_ = open_with(watched_);
        other_ = open_with(watched_.manual);
    }

    /// A lock that is held, and a waiter.
    struct Line {
        Acquire holder;
        Acquire waiter;
        Watch in_line;
        Watch without_ticket;
    };
    [[nodiscard]] Line line_at(const std::string& name) {
        Line line{acquire_of(name, Credentials::random()),
                  acquire_of(name, Credentials::random()),
                  {lock_name(name)},
                  {lock_name(name)}};
        line.without_ticket.seen_seq = granted(*other_, line.holder).lock.seq;
        line.waiter.ticket = ttl(20s);
        EXPECT_EQ(refused(*other_, line.waiter), Errc::lock_conflict);
        line.in_line = line.without_ticket;
        line.in_line.ticket = line.waiter.as.lock_id;
        return line;
    }
    void release(const Line& line) { static_cast<void>(granted(*other_, Release{line.holder.name, line.holder.as})); }

    /// Waits, and lets something happen when the waiter looks at the clock for the time number `at`. Says whether the
    /// wait came to an end by itself.
    [[nodiscard]] bool ends(const Watch& watch, int at, const std::function<void()>& happen) {
        int looks = 0;
        bool was_ended = false;
        watched_.on_look = [&] {
            if (++looks == at) happen();
            // Time stands still until then, so nothing but what happened ends the wait.
            if (looks == 40) {
                was_ended = true;
                watched_.manual.advance(1h);
            }
        };
        const auto waited = store_->wait_for_change(watch, Deadline{watched_.manual.boottime() + 1min});
        watched_.on_look = nullptr;
        EXPECT_TRUE(waited) << (waited ? "" : waited.error().message);
        return !was_ended;
    }

    WatchedClock watched_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<Store> other_;
};

TEST_F(FileWaiting, NoReleaseIsMissedWheneverItComes) {
    for (int at = 1; at <= looks_in_line; ++at) {
        const Line line = line_at("in/line/" + std::to_string(at));
        ASSERT_TRUE(ends(line.in_line, at, [&] { release(line); })) << at;
    }
    for (int at = 1; at <= looks_without_ticket; ++at) {
        const Line line = line_at("watched/" + std::to_string(at));
        ASSERT_TRUE(ends(line.without_ticket, at, [&] { release(line); })) << at;
    }
}

// Nobody rings then.
TEST_F(FileWaiting, TheEndOfALeaseIsNotMissedWheneverItComes) {
    for (int at = 1; at <= looks_in_line; ++at) {
        Line line = line_at("x/" + std::to_string(at));
        line.waiter.ticket = ttl(50s);
        EXPECT_EQ(refused(*other_, line.waiter), Errc::lock_conflict);
        ASSERT_TRUE(ends(line.in_line, at, [&] { watched_.manual.advance(31s); })) << at;
    }
}

TEST_F(FileWaiting, AStopEndsEveryWaitWheneverItComes) {
    const Line line = line_at("x");
    const auto stops = [&](Watch watch, int looks) {
        for (int at = 1; at <= looks; ++at) {
            std::stop_source stop;
            watch.stop = stop.get_token();
            ASSERT_TRUE(ends(watch, at, [&] { stop.request_stop(); })) << at;
        }
    };
    stops(line.in_line, looks_in_line);
    stops(line.without_ticket, looks_without_ticket);
    stops({lock_name("never/used")}, 2);
}

TEST_F(FileWaiting, ALockThatIsRemovedKeepsNobodyWaiting) {
    // Later than that the waiter in line has looked, and sleeps until it looks again.
    for (int at = 1; at <= 3; ++at) {
        const std::string name = "in/line/" + std::to_string(at);
        const Line line = line_at(name);
        ASSERT_TRUE(ends(line.in_line, at, [&] { std::filesystem::remove_all(folder_of(name)); })) << at;
    }
    for (int at = 1; at <= looks_without_ticket; ++at) {
        const std::string name = "watched/" + std::to_string(at);
        const Line line = line_at(name);
        ASSERT_TRUE(ends(line.without_ticket, at, [&] { std::filesystem::remove_all(folder_of(name)); })) << at;
    }
}

// Its bell and its watch need the whole path of the lock, which is longer than the system takes; nothing else does.
TEST_F(FileWaiting, AWaiterThatCannotBeWokenLooksByItself) {
    constexpr std::size_t longest_path = 4095;
    std::filesystem::path deep = root();
    while (deep.native().size() < longest_path - 10)
        deep /= std::string(std::min<std::size_t>(200, longest_path - 10 - deep.native().size()), 'd');
    use(deep.string());
    for (int at = 2; at <= looks_without_ticket; ++at) {
        const Line in_line = line_at("in/line/" + std::to_string(at));
        ASSERT_TRUE(ends(in_line.in_line, at, [&] { release(in_line); })) << at;
        const Line watched = line_at("watched/" + std::to_string(at));
        ASSERT_TRUE(ends(watched.without_ticket, at, [&] { release(watched); })) << at;
    }
}

// A lock that is excluded by another one has waiters before it has a record.
TEST_F(FileWaiting, WhoWaitsAtALockThatWasNeverHeldIsServed) {
    const Acquire obstacle = acquire_of("obstacle", Credentials::random());
    static_cast<void>(granted(*other_, obstacle));
    Acquire waiter = acquire_of("x", Credentials::random());
    waiter.unless_held.push_back(obstacle.name);
    waiter.ticket = ttl(20s);
    EXPECT_EQ(refused(*other_, waiter), Errc::lock_conflict);
    // It is first, and its lock is open, so it is sent back to ask.
    ASSERT_TRUE(ends({waiter.name, 0, waiter.as.lock_id}, 0, [] {}));
    EXPECT_TRUE(std::filesystem::exists(folder_of("x") / "bells"));
    EXPECT_EQ(refused(*other_, waiter), Errc::lock_conflict);
    static_cast<void>(granted(*other_, Release{obstacle.name, obstacle.as}));
    static_cast<void>(granted(*other_, waiter));
}

/// How a waiter looks when no ring comes.
class FileLookout : public FileStoreTest {
protected:
    [[nodiscard]] Acquire waiting(std::chrono::milliseconds ticket) {
        Acquire request = acquire_of("x", Credentials::random());
        request.ticket = ttl(ticket);
        EXPECT_EQ(refused(*store_, request), Errc::lock_conflict);
        return request;
    }
    [[nodiscard]] bool may_sleep(Lookout& lookout) const {
        const Folder locks = Folder::open((dir() / "locks").string(), Sync::off).value().value();
        const auto slept = lookout.look(LockFolder::find(locks, folder_name(lock_name("x"))).value().value());
        EXPECT_TRUE(slept) << (slept ? "" : slept.error().message);
        return slept && *slept;
    }

    const std::unique_ptr<Store> store_ = open();
};

TEST_F(FileLookout, FindsTheLockOpenAndThoseAheadDead) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random(), 10s)));
    static_cast<void>(waiting(1s));
    static_cast<void>(waiting(1s));
    Lookout lookout(waiting(30s).as.lock_id, clock_);
    EXPECT_TRUE(may_sleep(lookout));
    clock_.advance(9s);
    EXPECT_TRUE(may_sleep(lookout));
    clock_.advance(2s);
    EXPECT_FALSE(may_sleep(lookout));
}

TEST_F(FileLookout, FindsThatTheLockIsItsOwnHoweverManyWereAhead) {
    const Acquire holder = acquire_of("x", Credentials::random(), 60s);
    static_cast<void>(granted(*store_, holder));
    for (int i = 0; i < 5; ++i) static_cast<void>(waiting(1s));
    Lookout lookout(waiting(30s).as.lock_id, clock_);
    EXPECT_TRUE(may_sleep(lookout));
    clock_.advance(2s);
    static_cast<void>(granted(*store_, Release{holder.name, holder.as}));
    EXPECT_FALSE(may_sleep(lookout));
}

TEST_F(FileLookout, SendsBackWhoHasNoPlaceOrHasLostIt) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random(), 60s)));
    Lookout stranger(Credentials::random().lock_id, clock_);
    EXPECT_FALSE(may_sleep(stranger));
    const Acquire late = waiting(1s);
    clock_.advance(2s);
    Lookout dead(late.as.lock_id, clock_);
    EXPECT_FALSE(may_sleep(dead));
}

}  // namespace
}  // namespace holdfast::stores::file
