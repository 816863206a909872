// What happened on all locks, by pages: nothing is missing, and the reader of the library makes each event of it come
// once, in order for each lock.
#include "client/event_reader.hpp"
#include "conformance/store_conformance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using client::EventReader;

/// Longer than the overlap of any store's pages.
constexpr std::chrono::milliseconds longer_than_any_window = 1h;

using Lines = std::vector<std::string>;

Lines lines_of(const std::vector<AuditEvent>& events) {
    Lines lines;
    for (const AuditEvent& event : events) lines.push_back(fmt::format("{} {}", event.name.text(), event.seq));
    return lines;
}

/// Everything that there is for the reader now.
Lines read_all(EventReader& reader, Store& store) {
    std::vector<AuditEvent> events;
    do {
        std::ranges::move(must(reader.next(store, Deadline::never())), std::back_inserter(events));
    } while (!reader.is_at_end());
    return lines_of(events);
}

}  // namespace

TEST_P(StoreConformance, EventsOfAllLocksAreReadOnceAndInOrder) {
    EventReader reader;
    EXPECT_EQ(read_all(reader, store()), Lines{}) << "of a store that nobody has used";
    const Acquire a = by_alice(lock("a"), 1h);
    const Acquire b = by_bob(lock("b c"), 1h);
    granted(a);
    elapse(1s);
    granted(b);
    elapse(1s);
    granted(release(a));
    const Lines read = read_all(reader, store());
    EXPECT_THAT(read, testing::UnorderedElementsAre("a 1", "b c 1", "a 2"));
    EXPECT_LT(std::ranges::find(read, "a 1"), std::ranges::find(read, "a 2"));
    EXPECT_EQ(read_all(reader, store()), Lines{});
    elapse(1s);
    granted(renewal(b));
    EXPECT_EQ(read_all(reader, store()), Lines{"b c 2"});
    elapse(longer_than_any_window);
    EXPECT_EQ(read_all(reader, store()), Lines{});
    granted(by_carol(lock("a")));
    EXPECT_EQ(read_all(reader, store()), Lines{"a 3"}) << "of a lock that was quiet for long";
}

TEST_P(StoreConformance, EventPagesAreAboutAsLongAsAskedForAndEndSomewhere) {
    const Acquire a = by_alice(lock("a"), 1h);
    granted(a);
    // More than a page in one moment.
    must(store().apply(std::vector<Request>(30, renewal(a)), soon()));
    elapse(1s);
    granted(by_bob(lock("b")));
    std::map<std::string, int> seen;
    EventCursor cursor;
    bool is_last = false;
    for (int pages = 0; !is_last; ++pages) {
        ASSERT_LT(pages, 100);
        EventPage page = must(store().events(cursor, 4, soon()));
        EXPECT_LE(page.next.text.size(), EventCursor::longest);
        EXPECT_LE(page.events.size(), 40U);
        for (const std::string& line : lines_of(page.events)) ++seen[line];
        cursor = std::move(page.next);
        is_last = page.is_last;
    }
    EXPECT_EQ(seen.size(), 32U);
}

TEST_P(StoreConformance, EventsAreReadOnFromACursorByAnotherStoreObject) {
    const Acquire a = by_alice(lock("a"), 1h);
    granted(a);
    EventReader before;
    EXPECT_EQ(read_all(before, store()), Lines{"a 1"});
    elapse(longer_than_any_window);
    EXPECT_EQ(read_all(before, store()), Lines{});
    const std::string kept = before.cursor().text;
    granted(release(a));
    granted(by_bob(lock("b")));
    if (properties().is_shared) {
        ASSERT_TRUE(harness().reopen());
    }
    EventReader after(EventCursor{kept});
    EXPECT_THAT(read_all(after, store()), testing::UnorderedElementsAre("a 2", "b 1"));
}

TEST_P(StoreConformance, ACursorBesideTheLongestNameFits) {
    const Acquire a = by_alice(lock(std::string(255, 'x')), 1h);
    granted(a);
    must(store().apply(std::vector<Request>(3, renewal(a)), soon()));
    const EventPage page = must(store().events({}, 1, soon()));
    EXPECT_FALSE(page.is_last);
    EXPECT_LE(page.next.text.size(), EventCursor::longest);
    EXPECT_EQ(must(store().events(page.next, 1, soon())).events.size(), 1U);
}

TEST_P(StoreConformance, TextThatIsNoEventCursorIsRefused) {
    const auto expect_refused = [&] {
        for (const char* text : {"x", "window", "window 1", "window 1 -1", "window 1 2 3", "sqlite 1 2", "memory x 1 ",
                                 "etcd-pass 1 2 3 4 5", "window-pass 1 2 full 1 2 3 4 zz", " ", "12"})
            EXPECT_THAT(store().events(EventCursor{text}, 10, soon()), RefusedWith(Errc::usage)) << text;
        EXPECT_THAT(store().events(EventCursor{std::string(5000, ' ')}, 10, soon()), RefusedWith(Errc::usage));
    };
    expect_refused();
    granted(by_alice(lock("a")));
    expect_refused();
}

TEST_P(StoreConformance, FromTheEndOfEventsOnlyNewOnesAreRead) {
    const Acquire a = by_alice(lock("a"), 1h);
    granted(a);
    granted(by_bob(lock("b")));
    EventReader reader;
    must(reader.skip_to_end(store(), soon()));
    EXPECT_EQ(read_all(reader, store()), Lines{});
    granted(renewal(a));
    granted(by_carol(lock("c")));
    EXPECT_THAT(read_all(reader, store()), testing::UnorderedElementsAre("a 2", "c 1"));
    for (int i = 0; i < 20; ++i) {
        elapse(longer_than_any_window / 20);
        EXPECT_EQ(read_all(reader, store()), Lines{});
    }
}

TEST_P(StoreConformance, PrunedEventsAreNoHoleInTheEvents) {
    const Acquire a = by_alice(lock("a"), 1h);
    granted(a);
    EventReader reader;
    EXPECT_EQ(read_all(reader, store()), Lines{"a 1"});
    for (int i = 0; i < 8; ++i) granted(renewal(a));
    granted(Prune{lock("a"), 6, "root", "retention"});
    EXPECT_EQ(read_all(reader, store()), (Lines{"a 7", "a 8", "a 9", "a 10"}));
    EventReader from_the_beginning;
    EXPECT_EQ(read_all(from_the_beginning, store()), (Lines{"a 7", "a 8", "a 9", "a 10"}));
}

TEST_P(StoreConformance, EventsWrittenAfterTheClockWasPutBackAreRead) {
    const Acquire a = by_alice(lock("a"), 10h);
    granted(a);
    EventReader reader;
    EXPECT_EQ(read_all(reader, store()), Lines{"a 1"});
    harness().step_wall(-longer_than_any_window);
    granted(by_bob(lock("b")));
    EXPECT_EQ(read_all(reader, store()), Lines{"b 1"});
    granted(by_carol(lock("c")));
    EXPECT_EQ(read_all(reader, store()), Lines{"c 1"});
}

TEST_P(StoreConformance, EventsOfManyWritersAreReadOnceAndInOrderWhileTheyWrite) {
    if (!properties().is_shared) GTEST_SKIP() << "one Store object";
    constexpr int writers = 4;
    constexpr int rounds = 30;
    std::latch start(writers + 1);
    std::atomic<int> done = 0;
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < writers; ++writer)
        threads.emplace_back([&, writer] {
            const auto own = must(harness().open_another());
            start.arrive_and_wait();
            for (int round = 0; round < rounds; ++round) {
                // One that all use, and one of its own.
                for (const std::string& name : {std::string("all"), fmt::format("of/{}", writer)}) {
                    const Acquire take = by(fmt::format("writer {}", writer), lock(name), 1h);
                    const Deadline patient = Deadline::in(harness().clock(), 1min);
                    if (own->apply_one(take, patient)) must(own->apply_one(release(take), patient));
                }
            }
            ++done;
        });
    EventReader reader;
    Lines read;
    start.arrive_and_wait();
    while (done < writers) std::ranges::move(read_all(reader, store()), std::back_inserter(read));
    threads.clear();
    std::ranges::move(read_all(reader, store()), std::back_inserter(read));
    elapse(longer_than_any_window);
    std::ranges::move(read_all(reader, store()), std::back_inserter(read));

    std::map<std::string, Lines> by_lock;
    for (const std::string& line : read) by_lock[line.substr(0, line.rfind(' '))].push_back(line);
    EXPECT_EQ(by_lock.size(), writers + 1U);
    for (const auto& [name, lines] : by_lock) EXPECT_EQ(lines, lines_of(history(lock(name)))) << name;
}

}  // namespace holdfast::tests
