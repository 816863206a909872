// Reading the events of all locks in order. Method: the memory store behind one that pages badly: it repeats events,
// turns pages around and leaves events out of them, as a store does whose pages overlap.
#include "client/event_reader.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <deque>

namespace holdfast::client {
namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Lines = std::vector<std::string>;

/// The store behind it, with pages that the test makes.
class BadlyPaging final : public Store {
public:
    explicit BadlyPaging(Store& inner) : Store(inner.clock()), inner_(&inner) {}

    std::deque<EventPage> pages{};
    bool histories_fail = false;
    int histories = 0;
    std::vector<std::string> cursors{};  ///< From which pages were asked for.

    Result<EventPage> events(const EventCursor& after, std::size_t, Deadline) override {
        cursors.push_back(after.text);
        if (pages.empty()) return EventPage{.next = after, .unsettled_since = Instant{}};
        EventPage page = pages.front();
        if (!histories_fail) pages.pop_front();
        return page;
    }
    Result<EventCursor> end_of_events(Deadline) override { return EventCursor{"end"}; }
    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        ++histories;
        if (histories_fail) return fail(Errc::store_unavailable, "the line is cut");
        return inner_->history(query, deadline);
    }
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        return inner_->apply(requests, deadline);
    }
    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return inner_->inspect(name, deadline);
    }
    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        return inner_->list(query, deadline);
    }
    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return inner_->subscribe(watch, std::move(fired));
    }
    StoreProperties properties() const override { return inner_->properties(); }
    StoreInfo info() const override { return inner_->info(); }
    std::optional<StoreId> store_id() const override { return inner_->store_id(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_->examine(deadline); }

private:
    Store* inner_;
};

class EventReaderTest : public testing::Test {
protected:
    EventReaderTest() {
        const Acquire a = by_alice(lock("a"), 1h);
        must(inner_->apply_one(a, never_));
        for (int i = 0; i < 4; ++i) {
            clock_.advance(1s);
            must(inner_->apply_one(renewal(a), never_));
        }
        must(inner_->apply_one(by_bob(lock("b"), 1h), never_));
        events_ = must(inner_->history({.name = lock("a")}, never_));
    }

    /// A page with these events of the lock `a`.
    void page(const std::vector<std::uint64_t>& seqs, std::string next = "next") {
        EventPage one{.next = {std::move(next)}, .is_last = true, .unsettled_since = unsettled_since_};
        for (const std::uint64_t seq : seqs) one.events.push_back(events_.at(seq - 1));
        store_.pages.push_back(std::move(one));
    }
    Lines read(EventReader& reader) { return lines(must(reader.next(store_, never_))); }
    static Lines lines(const std::vector<AuditEvent>& events) {
        Lines found;
        for (const AuditEvent& event : events) found.push_back(fmt::format("{} {}", event.name.text(), event.seq));
        return found;
    }

    const Deadline never_ = Deadline::never();
    ManualClock clock_{};
    const std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    BadlyPaging store_{*inner_};
    std::vector<AuditEvent> events_{};
    std::optional<Instant> unsettled_since_ = Instant{};
};

TEST_F(EventReaderTest, RepeatedEventsComeOnce) {
    EventReader reader;
    page({1, 1, 2});
    page({1, 2, 3});
    page({3, 2, 1});
    EXPECT_THAT(read(reader), ElementsAre("a 1", "a 2"));
    EXPECT_THAT(read(reader), ElementsAre("a 3"));
    EXPECT_THAT(read(reader), IsEmpty());
    EXPECT_EQ(store_.histories, 0) << "nothing was missing";
}

TEST_F(EventReaderTest, AHoleIsFilledBeforeAnythingNewer) {
    EventReader reader;
    page({1});
    page({4, 3, 5});
    EXPECT_THAT(read(reader), ElementsAre("a 1"));
    EXPECT_THAT(read(reader), ElementsAre("a 2", "a 3", "a 4", "a 5"));
}

// One that was committed late stands before the pages that a reader without memory of the lock sees.
TEST_F(EventReaderTest, WhatIsMissingBeforeTheFirstEventOfALockIsFilledAsFarAsItIsUnsettled) {
    EventReader reader;
    unsettled_since_ = events_.at(2).at;
    page({4});
    EXPECT_THAT(read(reader), ElementsAre("a 3", "a 4"));
    page({3, 5});
    EXPECT_THAT(read(reader), ElementsAre("a 5"));
}

TEST_F(EventReaderTest, PrunedEventsAreNotWaitedFor) {
    EventReader reader;
    page({1});
    EXPECT_THAT(read(reader), ElementsAre("a 1"));
    must(inner_->apply_one(Prune{lock("a"), 3, "root"}, never_));
    page({5});
    EXPECT_THAT(read(reader), ElementsAre("a 4", "a 5"));
}

TEST_F(EventReaderTest, AnErrorLosesAndRepeatsNothing) {
    EventReader reader{EventCursor{"here"}};
    page({1});
    EXPECT_THAT(read(reader), ElementsAre("a 1"));
    page({2, 4}, "there");
    store_.histories_fail = true;
    EXPECT_THAT(reader.next(store_, never_), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(reader.cursor().text, "next") << "what was not returned is read again after a resume";
    store_.histories_fail = false;
    EXPECT_THAT(read(reader), ElementsAre("a 2", "a 3", "a 4"));
    EXPECT_EQ(reader.cursor().text, "there");
}

TEST_F(EventReaderTest, WhatWasThereAtTheEndIsNotGivenOutThoughItComesAgain) {
    EventReader reader;
    page({1, 2});
    must(reader.skip_to_end(store_, never_));
    page({1, 2, 3});
    EXPECT_THAT(read(reader), ElementsAre("a 3"));
    EXPECT_EQ(store_.cursors.front(), "end");
}

TEST_F(EventReaderTest, AnEventThatTheCallerHasReadElsewhereIsNotGivenOut) {
    for (const auto since : {std::optional<Instant>(Instant{}), std::optional<Instant>()}) {
        unsettled_since_ = since;
        EventReader one;
        one.has_read(events_.at(1));
        page({1, 2, 3, 4});
        EXPECT_THAT(read(one), ElementsAre("a 3", "a 4"));
    }
}

// Emptied or restored: numbers come again, with higher tokens.
TEST_F(EventReaderTest, ALockThatBeginsAgainIsReadFromItsBeginning) {
    EventReader reader;
    page({1, 2, 3, 4, 5});
    EXPECT_EQ(read(reader).size(), 5U);
    clock_.advance(1h);
    const auto emptied = must(open_store("memory:", clock_));
    must(emptied->apply_one(by_bob(lock("a"), 1h), never_));
    BadlyPaging other(*emptied);
    other.pages.push_back(
        {.events = must(emptied->history({}, never_)), .next = {"next"}, .unsettled_since = Instant{}});
    EXPECT_THAT(lines(must(reader.next(other, never_))), ElementsAre("a 1"));
}

TEST_F(EventReaderTest, SettledLocksAreForgottenAndReadOnAllTheSame) {
    EventReader reader({}, 0);
    page({1, 2});
    EXPECT_THAT(read(reader), ElementsAre("a 1", "a 2"));
    unsettled_since_ = events_.at(2).at;
    page({});
    EXPECT_THAT(read(reader), IsEmpty());
    page({3});
    EXPECT_THAT(read(reader), ElementsAre("a 3"));
    EXPECT_EQ(store_.histories, 1) << "it is asked what came before, because nothing is remembered";
}

}  // namespace
}  // namespace holdfast::client
