// Goal: threads and processes that use one store at once exclude each other and wake each other. Method: real threads
// and processes on the host's clock; each counts the other processes that believe to hold the lock.

#include "file_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <utility>

namespace holdfast::stores::file {
namespace {

/// Shared between processes.
struct Shared {
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::atomic<int> grants{0};
    std::atomic<std::uint64_t> highest_token{0};
    std::atomic<int> regressions{0};
};

class FileSharing : public FileStoreTest {
protected:
    void SetUp() override {
        void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        shared_ = new (memory) Shared;
    }
    void TearDown() override { munmap(shared_, sizeof(Shared)); }

    /// Takes and gives back the lock until it was granted `rounds` times.
    void contend(int rounds) {
        const auto store = try_open(host_clock());
        if (!store) std::abort();
        for (int granted_so_far = 0; granted_so_far < rounds;) {
            const auto as = Credentials::random();
            const auto reply = (*store)->apply_one(acquire_of("x", as, 60s), Deadline::never());
            if (!reply && reply.error().code == Errc::lock_conflict) continue;
            if (!reply) std::abort();
            if (shared_->inside.fetch_add(1) != 0) ++shared_->overlaps;
            const std::uint64_t token = reply->lock.token.value;
            if (shared_->highest_token.exchange(token) >= token) ++shared_->regressions;
            ++shared_->grants;
            shared_->inside.fetch_sub(1);
            if (!(*store)->apply_one(Release{lock_name("x"), as}, Deadline::never())) std::abort();
            ++granted_so_far;
        }
    }

    void expect_exclusion(int grants) {
        EXPECT_EQ(shared_->overlaps, 0);
        EXPECT_EQ(shared_->regressions, 0);
        EXPECT_EQ(shared_->grants, grants);
        const auto store = open();
        const auto events = store->history({.name = lock_name("x")}, Deadline::never());
        ASSERT_TRUE(events);
        EXPECT_EQ(events->size(), static_cast<std::size_t>(2 * grants));
        EXPECT_TRUE(verify_chain(*events, *store->inspect(lock_name("x"), Deadline::never())));
    }

    Shared* shared_ = nullptr;
};

// A process can be stopped between its look at the clock and its write, while readers go on.
TEST_F(FileSharing, AnEventThatIsWrittenLateIsReadByThoseThatWereFurther) {
    WatchedClock slow_clock;
    const ManualClock later(slow_clock.manual.wall() + 1s);
    auto slow = try_open(slow_clock);
    auto other = try_open(later);
    ASSERT_TRUE(slow && other);
    static_cast<void>(granted(**other, acquire_of("x", Credentials::random())));
    Result<EventCursor> end = EventCursor{};
    slow_clock.on_wall = [&, is_first = true]() mutable {
        if (!std::exchange(is_first, false)) return;
        static_cast<void>(granted(**other, acquire_of("y", Credentials::random())));
        end = (*other)->end_of_events(Deadline::never());
    };
    static_cast<void>(granted(**slow, acquire_of("late", Credentials::random())));
    ASSERT_TRUE(end);
    const auto page = (*other)->events(*end, 100, Deadline::never());
    ASSERT_TRUE(page);
    EXPECT_TRUE(
        std::ranges::any_of(page->events, [](const AuditEvent& event) { return event.name == lock_name("late"); }));
}

TEST_F(FileSharing, ThreadsOfOneProcessExcludeEachOther) {
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([&] { contend(100); });
    }
    expect_exclusion(400);
}

TEST_F(FileSharing, ProcessesExcludeEachOther) {
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        const pid_t pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            contend(100);
            _exit(0);
        }
        children.push_back(pid);
    }
    for (const pid_t pid : children) {
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_EQ(status, 0);
    }
    expect_exclusion(400);
}

TEST_F(FileSharing, ReadersNeverSeeATornState) {
    const auto as = Credentials::random();
    const auto store = open();
    static_cast<void>(granted(*store, acquire_of("x", as)));
    std::atomic<bool> done = false;
    std::jthread writer([&] {
        for (int i = 0; i < 1000; ++i)
            EXPECT_TRUE(store->apply_one(Renew{lock_name("x"), as, ttl(30s)}, Deadline::never()));
        done = true;
    });
    std::uint64_t seen = 0;
    while (!done) {
        const auto events = store->history({.name = lock_name("x")}, Deadline::never());
        ASSERT_TRUE(events) << events.error().message;
        ASSERT_FALSE(events->empty());
        // The history is a chain of its own up to its last event.
        LockStatus status{.name = lock_name("x")};
        status.seq = events->back().seq;
        status.chain = events->back().hash;
        ASSERT_TRUE(verify_chain(*events, status));
        ASSERT_GE(status.seq, seen);
        seen = status.seq;
        const auto inspected = store->inspect(lock_name("x"), Deadline::never());
        ASSERT_TRUE(inspected) << inspected.error().message;
        ASSERT_EQ(inspected->state, LockState::held);
    }
}

/// Runs `change` while another thread waits, and says whether that was woken before its deadline.
template <class Change>
bool wakes(Store& store, const Watch& watch, const Change& change) {
    const Deadline deadline = Deadline::in(host_clock(), 60s);
    std::jthread waiter([&] { EXPECT_TRUE(store.wait_for_change(watch, deadline)); });
    change();
    waiter.join();
    return !deadline.passed(host_clock());
}

TEST_F(FileSharing, AReleaseWakesAWatchWithoutATicket) {
    const auto store = std::move(*try_open(host_clock()));
    const auto as = Credentials::random();
    const auto seq = granted(*store, acquire_of("x", as)).lock.seq;
    EXPECT_TRUE(
        wakes(*store, {lock_name("x"), seq}, [&] { static_cast<void>(granted(*store, Release{lock_name("x"), as})); }));
}

TEST_F(FileSharing, AReleaseWakesTheFirstInLine) {
    const auto store = std::move(*try_open(host_clock()));
    const auto as = Credentials::random();
    const auto seq = granted(*store, acquire_of("x", as)).lock.seq;
    Acquire waiting = acquire_of("x", Credentials::random());
    waiting.ticket = ttl(120s);
    EXPECT_EQ(refused(*store, waiting), Errc::lock_conflict);
    EXPECT_TRUE(wakes(*store, {lock_name("x"), seq, waiting.as.lock_id},
                      [&] { static_cast<void>(granted(*store, Release{lock_name("x"), as})); }));
    // The ring stays until the waiter asks again: a waiter that begins to wait now does not sleep.
    EXPECT_TRUE(wakes(*store, {lock_name("x"), seq, waiting.as.lock_id}, [] {}));
}

TEST_F(FileSharing, TheFirstUseOfALockWakesItsWatches) {
    const auto store = std::move(*try_open(host_clock()));
    EXPECT_TRUE(wakes(*store, {lock_name("x"), 0},
                      [&] { static_cast<void>(granted(*store, acquire_of("x", Credentials::random()))); }));
}

TEST_F(FileSharing, LocksThatExcludeEachOtherAreNeverHeldTogether) {
    std::atomic<int> held_x = 0;
    std::atomic<int> held_y = 0;
    std::atomic<int> together = 0;
    const auto run = [&](const char* mine, const char* other, std::atomic<int>& own, std::atomic<int>& theirs) {
        const auto store = std::move(*try_open(host_clock()));
        for (int granted_so_far = 0; granted_so_far < 100;) {
            Acquire request = acquire_of(mine, Credentials::random(), 60s);
            request.unless_held.push_back(lock_name(other));
            const auto reply = store->apply_one(request, Deadline::never());
            if (!reply) {
                ASSERT_EQ(reply.error().code, Errc::lock_conflict) << reply.error().message;
                continue;
            }
            own = 1;
            if (theirs != 0) ++together;
            own = 0;
            ASSERT_TRUE(store->apply_one(Release{lock_name(mine), request.as}, Deadline::never()));
            ++granted_so_far;
        }
    };
    {
        const std::jthread x([&] { run("x", "y", held_x, held_y); });
        const std::jthread y([&] { run("y", "x", held_y, held_x); });
    }
    EXPECT_EQ(together, 0);
}

}  // namespace
}  // namespace holdfast::stores::file
