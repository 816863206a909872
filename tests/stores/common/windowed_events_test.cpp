// Events of stores that have no order but time. Method: the memory store, with events that are written and cannot be
// seen yet, as those of a transaction that is committed late.
#include "stores/common/windowed_events.hpp"

#include "client/event_reader.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace holdfast::stores {
namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using client::EventReader;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Lines = std::vector<std::string>;

std::string line_of(const AuditEvent& event) { return event.name.text() + " " + std::to_string(event.seq); }

constexpr EventWindow window{1min};

class LateStore final : public WindowedStore {
public:
    explicit LateStore(Store& inner) : WindowedStore(inner.clock(), window), inner_(inner) {}

    std::set<std::string> uncommitted{};  ///< As `line_of` has them.
    std::size_t events_read = 0;

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        HistoryQuery all = query;
        all.limit.reset();
        auto found = must(inner_.history(all, deadline));
        std::erase_if(found, [&](const AuditEvent& event) { return uncommitted.contains(line_of(event)); });
        if (query.limit && found.size() > *query.limit)
            found.erase(found.begin() + static_cast<std::ptrdiff_t>(*query.limit), found.end());
        events_read += found.size();
        return found;
    }
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        return inner_.apply(requests, deadline);
    }
    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return inner_.inspect(name, deadline);
    }
    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        return inner_.list(query, deadline);
    }
    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return inner_.subscribe(watch, std::move(fired));
    }
    StoreProperties properties() const override { return inner_.properties(); }
    StoreInfo info() const override { return inner_.info(); }
    std::optional<StoreId> store_id() const override { return inner_.store_id(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_.examine(deadline); }

private:
    Store& inner_;
};

class WindowedEvents : public testing::Test {
protected:
    void change(const Request& request) { must(store_.apply_one(request, Deadline::never())); }
    Lines read(EventReader& reader) {
        Lines lines;
        do {
            for (const AuditEvent& event : must(reader.next(store_, Deadline::never())))
                lines.push_back(line_of(event));
        } while (!reader.is_at_end());
        return lines;
    }

    ManualClock clock_{};
    const std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    LateStore store_{*inner_};
};

TEST_F(WindowedEvents, WhatIsCommittedLateIsFoundWithinTheWindow) {
    const Acquire late = by_alice(lock("late"), 1h);
    const Acquire other = by_bob(lock("other"), 1h);
    change(other);
    EventReader reader;
    EXPECT_THAT(read(reader), ElementsAre("other 1"));
    store_.uncommitted = {"late 1"};
    change(late);
    clock_.advance(40s);
    change(renewal(other));
    EXPECT_THAT(read(reader), ElementsAre("other 2"));
    EXPECT_THAT(read(reader), IsEmpty());
    EventReader resumed(reader.cursor());
    store_.uncommitted.clear();
    clock_.advance(15s);
    EXPECT_THAT(read(reader), ElementsAre("late 1"));
    clock_.advance(15s);
    EXPECT_THAT(read(resumed), testing::Contains("late 1"));
}

// A quick pass finds the newer one alone.
TEST_F(WindowedEvents, ALateEventComesBeforeANewerOneOfItsLock) {
    const Acquire late = by_alice(lock("late"), 1h);
    change(late);
    clock_.advance(1h);
    EventReader reader;
    must(reader.skip_to_end(store_, Deadline::never()));
    store_.uncommitted = {"late 2"};
    change(renewal(late, Revive::yes));
    clock_.advance(10s);
    EXPECT_THAT(read(reader), IsEmpty());
    EventReader resumed(reader.cursor());
    store_.uncommitted.clear();
    change(renewal(late));
    EXPECT_THAT(read(reader), ElementsAre("late 2", "late 3"));
    EXPECT_THAT(read(resumed), ElementsAre("late 2", "late 3"));
}

TEST_F(WindowedEvents, AQuietStoreCostsNothing) {
    const Acquire alice = by_alice(lock("a"), 1h);
    change(alice);
    for (int i = 0; i < 100; ++i) change(renewal(alice));
    clock_.advance(1h);
    EventReader reader;
    EXPECT_EQ(read(reader).size(), 101U);
    clock_.advance(10s);
    EXPECT_THAT(read(reader), IsEmpty());
    store_.events_read = 0;
    for (int i = 0; i < 100; ++i) {
        clock_.advance(10s);
        EXPECT_THAT(read(reader), IsEmpty());
    }
    EXPECT_EQ(store_.events_read, 0U);
}

TEST_F(WindowedEvents, APutBackClockHidesNothingThatIsWrittenWhileItIsBehind) {
    change(by_alice(lock("a"), 10h));
    EventReader reader;
    EXPECT_THAT(read(reader), ElementsAre("a 1"));
    clock_.step_wall(-2h);
    change(by_bob(lock("b"), 1h));
    EXPECT_THAT(read(reader), ElementsAre("b 1"));
    clock_.advance(10s);
    store_.uncommitted = {"c 1"};
    change(by_carol(lock("c"), 1h));
    clock_.advance(30s);
    EXPECT_THAT(read(reader), IsEmpty());
    store_.uncommitted.clear();
    clock_.advance(20s);
    EXPECT_THAT(read(reader), ElementsAre("c 1"));
}

}  // namespace
}  // namespace holdfast::stores
