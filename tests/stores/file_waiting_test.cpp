// Goal: a wait in a file store ends when it should, at whatever moment the reason comes, and whatever wakes it is lost.
// Method: a clock that lets things happen when the waiter looks at it; and what a store looks with, by itself.

#include "file_fixture.hpp"
#include "stores/file/wait.hpp"
#include "support/matchers.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <stop_token>

namespace holdfast::stores::file {
namespace {

/// More often than the clock is looked at before a watch sleeps for the first time, with a ticket or without.
constexpr int moments = 12;

class FileWaiting : public FileStoreTest {
protected:
    void SetUp() override { use(dir().string()); }

    /// Begins again with a store in this folder.
    void use(const std::string& folder) {
        url_ = "file:" + folder + "?sync=off";
        other_ = open_file_store(*base::Url::parse(url_), watched_.manual).value();
        reopen();
    }
    void reopen() {
        store_.reset();
        store_ = open_file_store(*base::Url::parse(url_), watched_).value();
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

    /// Waits, and lets something happen when the store looks at the clock for the time number `at`. Says whether the
    /// wait came to an end because of it: time stands still.
    [[nodiscard]] bool ends(const Watch& watch, int at, const std::function<void()>& happen) {
        std::atomic<int> looks = 0;
        watched_.on_look = [&] {
            if (++looks == at) happen();
        };
        const Deadline deadline{watched_.manual.boottime() + 1h};
        auto waited = std::async(std::launch::async, [&] { return store_->wait_for_change(watch, deadline); });
        const bool has_ended = waited.wait_for(60s) == std::future_status::ready;
        if (!has_ended) watched_.manual.advance(2h);
        EXPECT_THAT(waited.get(), tests::Granted());
        // The thread that serves subscriptions looks at the clock, too, and must not find the hook half gone.
        reopen();
        watched_.on_look = nullptr;
        return has_ended;
    }

    WatchedClock watched_;
    std::string url_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<Store> other_;
};

TEST_F(FileWaiting, NoReleaseIsMissedWheneverItComes) {
    for (int at = 1; at <= moments; ++at) {
        const Line line = line_at("in/line/" + std::to_string(at));
        ASSERT_TRUE(ends(line.in_line, at, [&] { release(line); })) << at;
    }
    for (int at = 1; at <= moments; ++at) {
        const Line line = line_at("watched/" + std::to_string(at));
        ASSERT_TRUE(ends(line.without_ticket, at, [&] { release(line); })) << at;
    }
}

// Nobody rings then.
TEST_F(FileWaiting, TheEndOfALeaseIsNotMissedWheneverItComes) {
    for (int at = 1; at <= moments; ++at) {
        Line line = line_at("x/" + std::to_string(at));
        line.waiter.ticket = ttl(50s);
        EXPECT_EQ(refused(*other_, line.waiter), Errc::lock_conflict);
        ASSERT_TRUE(ends(line.in_line, at, [&] { watched_.manual.advance(31s); })) << at;
    }
}

TEST_F(FileWaiting, AStopEndsEveryWaitWheneverItComes) {
    const Line line = line_at("x");
    const auto stops = [&](Watch watch) {
        for (int at = 1; at <= moments; ++at) {
            std::stop_source stop;
            watch.stop = stop.get_token();
            ASSERT_TRUE(ends(watch, at, [&] { stop.request_stop(); })) << at;
        }
    };
    stops(line.in_line);
    stops(line.without_ticket);
    stops({lock_name("never/used")});
}

TEST_F(FileWaiting, ALockThatIsRemovedKeepsNobodyWaiting) {
    // A waiter in line that sleeps already finds out when it looks again.
    const Line gone = line_at("in/line");
    std::filesystem::remove_all(folder_of("in/line"));
    ASSERT_TRUE(ends(gone.in_line, 0, [] {}));
    for (int at = 1; at <= moments; ++at) {
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
    for (int at = 1; at <= moments; ++at) {
        const Line in_line = line_at("in/line/" + std::to_string(at));
        ASSERT_TRUE(ends(in_line.in_line, at, [&] { release(in_line); })) << at;
        const Line watched = line_at("watched/" + std::to_string(at));
        ASSERT_TRUE(ends(watched.without_ticket, at, [&] { release(watched); })) << at;
    }
}

// A lock that is excluded by another one has waiters before it has a record.
TEST_F(FileWaiting, AWaiterForALockThatWasNeverHeldIsServed) {
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

/// How a waiter's turn is found when no ring comes.
class FileQueueReading : public FileStoreTest {
protected:
    [[nodiscard]] Acquire waiting(std::chrono::milliseconds ticket) {
        Acquire request = acquire_of("x", Credentials::random());
        request.ticket = ttl(ticket);
        EXPECT_EQ(refused(*store_, request), Errc::lock_conflict);
        return request;
    }
    [[nodiscard]] HubWatch watch_of(const Acquire& request) {
        return {++last_id_, {.name = request.name, .seen_seq = 1, .ticket = request.as.lock_id}};
    }
    void add(const HubWatch& watch) { source_.add({&watch, 1}); }
    [[nodiscard]] bool fires(const HubWatch& watch) {
        const auto seen = source_.look({&watch, 1});
        return seen.front().fired.has_value();
    }

    const std::unique_ptr<Store> store_ = open();
    const Bonds bonds_{base::Presences((dir() / "presence").string(), base::Presences::Locks::seen_by_all),
                       Bonds::Sessions::off};
    Source source_{[this](const LockName& name) {
                       const Folder locks = Folder::open((dir() / "locks").string(), Sync::off).value().value();
                       return LockFolder::find(locks, folder_name(name));
                   },
                   bonds_, clock_};
    std::uint64_t last_id_ = 0;
};

TEST_F(FileQueueReading, FindsTheLockOpenAndThoseAheadDead) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random(), 10s)));
    static_cast<void>(waiting(1s));
    static_cast<void>(waiting(1s));
    const HubWatch watch = watch_of(waiting(30s));
    add(watch);
    EXPECT_FALSE(fires(watch));
    clock_.advance(9s);
    EXPECT_FALSE(fires(watch));
    clock_.advance(2s);
    EXPECT_TRUE(fires(watch));
}

TEST_F(FileQueueReading, FindsThatTheLockIsItsOwnHoweverManyWereAhead) {
    const Acquire holder = acquire_of("x", Credentials::random(), 60s);
    static_cast<void>(granted(*store_, holder));
    for (int i = 0; i < 5; ++i) static_cast<void>(waiting(1s));
    const HubWatch watch = watch_of(waiting(30s));
    add(watch);
    EXPECT_FALSE(fires(watch));
    clock_.advance(2s);
    static_cast<void>(granted(*store_, Release{holder.name, holder.as}));
    EXPECT_TRUE(fires(watch));
}

TEST_F(FileQueueReading, SendsBackAWaiterThatHasNoPlaceOrHasLostIt) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random(), 60s)));
    const HubWatch stranger = watch_of(acquire_of("x", Credentials::random()));
    add(stranger);
    EXPECT_TRUE(fires(stranger));
    const HubWatch dead = watch_of(waiting(1s));
    add(dead);
    clock_.advance(2s);
    EXPECT_TRUE(fires(dead));
}

// The folder of a queue with a damaged ticket cannot be read, so a look that succeeds has not read it.
TEST_F(FileQueueReading, TheQueueIsNotReadWhileSomebodyIsSurelyAhead) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random(), 60s)));
    static_cast<void>(waiting(50s));
    const HubWatch watch = watch_of(waiting(50s));
    add(watch);
    EXPECT_FALSE(fires(watch));
    write_file(folder_of("x") / "queue" / "damaged", "");
    clock_.advance(10s);
    EXPECT_FALSE(fires(watch));
    const HubWatch another = watch_of(acquire_of("x", Credentials::random()));
    add(another);
    EXPECT_TRUE(fires(another)) << "with the error";
}

TEST_F(FileQueueReading, ARungWaiterReadsTheQueue) {
    static_cast<void>(granted(*store_, acquire_of("x", Credentials::random(), 1s)));
    const Acquire ahead = waiting(50s);
    const Acquire waiter = waiting(50s);
    const HubWatch watch = watch_of(waiter);
    add(watch);
    clock_.advance(2s);
    EXPECT_FALSE(fires(watch));
    // Nothing but the queue changes, and too little time passes to look for that.
    static_cast<void>(granted(*store_, Cancel{ahead.name, ahead.as}));
    EXPECT_THAT(source_.listen(1ms).ids, testing::Contains(watch.id));
    EXPECT_TRUE(fires(watch));
}

}  // namespace
}  // namespace holdfast::stores::file
