// What lies between reading and writing of a batch, without any store: what is asked for, what is written.
#include "stores/common/batch.hpp"

#include "holdfast/open.hpp"
#include "stores/common/records.hpp"
#include "stores/common/sealed.hpp"
#include "stores/common/server_clock.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

namespace holdfast::stores {
namespace {

using namespace std::chrono_literals;
using namespace tests;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Instant noon{std::chrono::milliseconds{1'700'000'000'000}};

std::vector<std::string> names_in(const std::vector<Wanted>& wanted) {
    std::vector<std::string> names;
    for (const Wanted& one : wanted) names.push_back(one.name.text());
    return names;
}

/// Runs `requests` on locks that were never used, but for those in `views`.
std::vector<Reply> run(Batch& batch, std::vector<LockView> views = {}, Instant now = noon,
                       std::chrono::milliseconds margin = {}) {
    for (const Wanted& wanted : batch.wanted()) batch.found(wanted.name, LockView{kernel::blank(wanted.name)});
    for (LockView& view : views) {
        const LockName name = view.record.name;
        batch.found(name, std::move(view));
    }
    return batch.run(now, margin);
}

/// The lock as it is after `requests`.
LockView after(const std::vector<Request>& requests, Instant now = noon) {
    Batch batch(requests);
    must(run(batch, {}, now).back());
    const Change& change = batch.changes().front();
    return {.record = *change.record};
}

kernel::Ticket ticket_of(const Acquire& request, std::uint64_t number, Instant expires_at) {
    return {request.as.lock_id, request.as.key.hash(), number, request.holder, noon, expires_at};
}

TEST(BatchTest, AsksForEveryLockOnceInByteOrder) {
    Acquire excluded = by_alice(lock("b"));
    excluded.unless_held = {lock("c"), lock("a")};
    const std::vector<Request> requests{excluded, by_bob(lock("B")), check(lock("b"), FencingToken{1})};
    const Batch batch(requests);
    EXPECT_THAT(names_in(batch.wanted()), ElementsAre("B", "a", "b", "c"));
    EXPECT_TRUE(batch.wanted()[2].may_create);
    EXPECT_FALSE(batch.wanted()[1].may_change) << "only looked at";
    EXPECT_GE(batch.wanted()[2].depth, 2U) << "who follows must be known when the head goes";
}

TEST(BatchTest, CountsTheRequestsForEachLock) {
    Acquire excluded = by_alice(lock("b"));
    excluded.unless_held = {lock("c")};
    const std::vector<Request> requests{by_bob(lock("a")), excluded, check(lock("b"), FencingToken{1})};
    const Batch batch(requests);
    ASSERT_THAT(names_in(batch.wanted()), ElementsAre("a", "b", "c"));
    EXPECT_TRUE(batch.wanted()[0].is_asked_for_once());
    EXPECT_FALSE(batch.wanted()[1].is_asked_for_once());
    EXPECT_FALSE(batch.wanted()[2].is_asked_for_once()) << "nobody asks for it";
}

TEST(BatchTest, ALaterRequestSeesWhatAnEarlierOneDid) {
    const Acquire alice = by_alice(lock("x"));
    const std::vector<Request> requests{alice, by_bob(lock("x")), release(alice), by_carol(lock("x"))};
    Batch batch(requests);
    const auto replies = run(batch);
    EXPECT_THAT(replies[0], Granted());
    EXPECT_THAT(replies[1], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[2], Granted());
    EXPECT_THAT(replies[3], Granted());
    ASSERT_THAT(batch.changes(), SizeIs(1));
    const Change& change = batch.changes().front();
    EXPECT_TRUE(change.is_new);
    EXPECT_THAT(change.events, SizeIs(3));
    EXPECT_EQ(change.record->seq, 3U);
}

TEST(BatchTest, ARefusalWritesNothing) {
    const LockView held = after({by_alice(lock("x"))});
    const std::vector<Request> requests{by_bob(lock("x")), check(lock("y"), FencingToken{7})};
    Batch batch(requests);
    EXPECT_THAT(run(batch, {held})[0], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(batch.changes(), IsEmpty());
}

TEST(BatchTest, AnUnreadableLockBlocksOnlyTheRequestsThatNeedIt) {
    Acquire excluded = by_carol(lock("z"));
    excluded.unless_held = {lock("x")};
    const std::vector<Request> requests{by_alice(lock("x")), by_bob(lock("y")), excluded};
    Batch batch(requests);
    for (const Wanted& wanted : batch.wanted()) batch.found(wanted.name, LockView{kernel::blank(wanted.name)});
    batch.found(lock("x"), std::unexpected(unreadable(lock("x"), "the record")));
    const auto replies = batch.run(noon);
    EXPECT_THAT(replies[0], RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(replies[1], Granted());
    EXPECT_THAT(replies[2], RefusedWith(Errc::record_corrupt)) << "what may be held is not free";
}

TEST(BatchTest, WakesTheFirstInLineWhenTheLockOpens) {
    const Acquire alice = by_alice(lock("x"));
    const Acquire bob = queued(by_bob(lock("x")));
    LockView held = after({alice});
    held.tickets = {ticket_of(by_carol(lock("x")), 1, noon - 1s), ticket_of(bob, 2, noon + 10s)};
    held.last_number = 2;
    held.waiters = 1;
    const std::vector<Request> requests{release(alice)};
    Batch batch(requests);
    EXPECT_THAT(run(batch, {held})[0], Granted());
    const Change& change = batch.changes().front();
    EXPECT_EQ(change.next, bob.as.lock_id);
    ASSERT_THAT(change.dropped, SizeIs(1)) << "a ticket that ran out is swept away by whoever writes";
    EXPECT_EQ(change.dropped[0].number, 1U);
}

TEST(BatchTest, ATicketThatIsTakenAndGivenUpInOneBatchLeavesNothing) {
    const LockView held = after({by_alice(lock("x"))});
    const Acquire bob = queued(by_bob(lock("x")));
    const std::vector<Request> requests{bob, cancel(bob)};
    Batch batch(requests);
    const auto replies = run(batch, {held});
    EXPECT_THAT(replies[0], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[1], Granted());
    for (const Change& change : batch.changes()) EXPECT_THAT(change.put, IsEmpty());
}

TEST(BatchTest, WaitersThatJoinInOneBatchHavePlacesOfTheirOwnAfterTheEarlierOnes) {
    LockView held = after({by_alice(lock("x"))});
    held.last_number = 7;
    const std::vector<Request> requests{queued(by_bob(lock("x"))), queued(by_carol(lock("x"))),
                                        queued(by("dave", lock("x"), 30s))};
    Batch batch(requests);
    for (const Reply& reply : run(batch, {held})) EXPECT_THAT(reply, RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(batch.changes(), SizeIs(1));
    ASSERT_THAT(batch.changes()[0].put, SizeIs(3));
    std::uint64_t last = held.last_number;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const kernel::Ticket& ticket = batch.changes()[0].put[i];
        EXPECT_EQ(ticket.lock_id, std::get<Acquire>(requests[i]).as.lock_id);
        EXPECT_GT(ticket.number, last);
        last = ticket.number;
    }
}

TEST(BatchTest, NobodyTakesOverWithinTheMarginOfAnExpiry) {
    const Acquire alice = by_alice(lock("x"), 30s);
    const LockView held = after({alice});
    const auto answer = [&](const Request& request, Instant now) {
        const std::vector<Request> requests{request};
        Batch batch(requests);
        return run(batch, {held}, now, 5s)[0];
    };
    EXPECT_THAT(answer(by_bob(lock("x")), noon + 30s), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(answer(by_bob(lock("x")), noon + 34s), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(answer(by_bob(lock("x")), noon + 35s), Granted());
    EXPECT_THAT(answer(renewal(alice), noon + 30s), RefusedWith(Errc::lock_expired)) << "the holder gains nothing";
}

TEST(BatchTest, NobodyAnnouncesALeaseWithinTheMargin) {
    const Acquire alice = by_alice(lock("x"), 30s);
    const LockView held = after({alice});
    const auto answer = [&](Instant now) {
        const std::vector<Request> requests{expiry(alice)};
        Batch batch(requests);
        return run(batch, {held}, now, 5s)[0];
    };
    EXPECT_THAT(answer(noon + 30s), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(answer(noon + 35s - 1ms), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(answer(noon + 35s), Granted());
}

// The margin holds a lease for longer, as if the clock stood still; a place in the queue must not pay for that.
TEST(BatchTest, ATicketTakenWithinTheMarginLastsAsLongAsAnyOther) {
    const LockView held = after({by_alice(lock("x"), 30s)});
    const std::vector<Request> requests{queued(by_bob(lock("x")), 3s)};
    Batch batch(requests);
    EXPECT_THAT(run(batch, {held}, noon + 34s, 5s)[0], RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(batch.changes(), SizeIs(1)) << "swept out before it was ever stored";
    ASSERT_THAT(batch.changes().front().put, SizeIs(1));
    EXPECT_EQ(batch.changes().front().put.front().expires_at, noon + 37s);
}

TEST(SealedTest, WhatWasAlteredIsNeverReadAsSomethingElse) {
    const kernel::Record record = after({by_alice(lock("x"))}).record;
    base::Bytes bytes = sealed(record, noon);
    EXPECT_EQ(must(unsealed_record(bytes, lock("x"), noon)).value, record);
    EXPECT_THAT(unsealed_record(bytes, lock("y"), noon), RefusedWith(Errc::record_corrupt)) << "of another lock";
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
        EXPECT_THAT(unsealed_record(bytes, lock("x"), noon), RefusedWith(Errc::record_corrupt)) << "bit " << bit;
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    }
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THAT(unsealed_record(base::ByteView(bytes).first(size), lock("x"), noon),
                    RefusedWith(Errc::record_corrupt));
}

TEST(SealedTest, ADeadlineMovesWithAClockThatWasPutBack) {
    const kernel::Record record = after({by_alice(lock("x"), 30s)}).record;
    const base::Bytes bytes = sealed(record, noon);
    const auto put_back = must(unsealed_record(bytes, lock("x"), noon - 1h));
    EXPECT_TRUE(put_back.moved);
    EXPECT_EQ(put_back.value.held->lease.expires_at, noon - 1h + 30s) << "one ttl from now, and not an hour";
    const auto gone_on = must(unsealed_record(bytes, lock("x"), noon + 29s));
    EXPECT_FALSE(gone_on.moved);
    EXPECT_EQ(gone_on.value.held->lease.expires_at, noon + 30s);
    EXPECT_FALSE(must(unsealed_record(bytes, lock("x"), noon - 4s, 5s)).moved) << "nodes of a cluster differ";

    const kernel::Ticket ticket = ticket_of(by_bob(lock("x")), 1, noon + 10s);
    EXPECT_EQ(must(unsealed_ticket(sealed(ticket, noon), lock("x"), noon - 1h)).value.expires_at, noon - 1h + 10s);
}

TEST(BatchTest, AMovedDeadlineIsSavedByTheFirstChangeOfTheLock) {
    LockView held = after({by_alice(lock("x"))});
    held.moved = true;
    const std::vector<Request> contender{by_bob(lock("x"))};
    Batch refused(contender);
    EXPECT_THAT(run(refused, {held})[0], RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(refused.changes(), SizeIs(1)) << "otherwise the lease would last one more ttl at every look";
    EXPECT_EQ(refused.changes()[0].record, held.record);
    EXPECT_THAT(refused.changes()[0].events, IsEmpty());

    const std::vector<Request> looking{check(lock("x"), FencingToken{1})};
    Batch looked(looking);
    EXPECT_FALSE(run(looked, {held})[0]);
    EXPECT_THAT(looked.changes(), IsEmpty());
}

TEST(BatchTest, AMovedTicketIsSavedByTheFirstChangeOfTheLock) {
    LockView held = after({by_alice(lock("x"))});
    const kernel::Ticket dead_waiter = ticket_of(by_carol(lock("x")), 1, noon + 10s);
    const Acquire bob = queued(by_bob(lock("x")));
    held.tickets = {dead_waiter, ticket_of(bob, 2, noon + 10s)};
    held.moved_tickets = {dead_waiter.lock_id, bob.as.lock_id};
    held.last_number = 2;
    held.waiters = 2;
    const std::vector<Request> requests{bob};
    Batch refused(requests);
    EXPECT_THAT(run(refused, {held})[0], RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(refused.changes(), SizeIs(1));
    EXPECT_THAT(refused.changes()[0].put, SizeIs(2)) << "and the one that asked once only";
    EXPECT_THAT(refused.changes()[0].put, Contains(dead_waiter))
        << "otherwise it would be first until the hour is over";
    EXPECT_FALSE(refused.changes()[0].record);

    const std::vector<Request> leaving{cancel(bob)};
    Batch left(leaving);
    EXPECT_THAT(run(left, {held})[0], Granted());
    EXPECT_THAT(left.changes()[0].put, ElementsAre(dead_waiter)) << "who leaves is not put back";
}

// A lease that is written by a guess of the server's clock lasts as long as its holder believes if the guess is never
// behind, and not much longer if it is not far ahead.
TEST(ServerClockGuess, IsNeverBehindTheServerNorFarAhead) {
    ServerClock clock;
    EXPECT_FALSE(clock.on_arrival()) << "nobody has told it";
    for (const auto trip : {0ms, 7ms, 20ms, 500ms}) {
        const Boottime received = host_clock().boottime();
        const Boottime sent = received - trip;
        clock.saw(noon, sent, received);
        const auto guess = clock.on_arrival();
        const auto since_sent = host_clock().boottime() - sent;
        ASSERT_TRUE(guess);
        // The server may have read its clock the moment the question left, and the next one may take as long.
        EXPECT_GE(*guess, noon + trip + 1ms) << trip.count();
        EXPECT_LE(*guess, noon + since_sent + 1ms + 20ms) << trip.count();
    }
    const Boottime long_ago = host_clock().boottime() - 61s;
    clock.saw(noon, long_ago, long_ago);
    EXPECT_FALSE(clock.on_arrival()) << "clocks drift apart";
}

TEST(ServerClockGuess, IsWrittenOnlyWhileItHolds) {
    const Window window = ServerClock::window_for(noon);
    EXPECT_EQ(window.latest, noon + 8ms) << "a lease must not end before its holder believes";
    EXPECT_EQ(window.earliest, noon - 100ms);
}

// More than one page of them.
TEST(ExamineRecords, CountsEveryLock) {
    const auto store = must(open_store("memory:"));
    const Deadline end = Deadline::in(host_clock(), 1min);
    EXPECT_EQ(examine_records(*store, host_clock(), end).detail, "none yet");
    for (const int count : {1, 999, 1000, 1001, 2001}) {
        std::vector<Request> requests;
        for (int i = 0; i < count; ++i) requests.emplace_back(by_alice(lock(std::to_string(i))));
        must(store->apply(requests, end));
        const Finding found = examine_records(*store, host_clock(), end);
        EXPECT_TRUE(found.ok);
        EXPECT_EQ(found.detail, std::to_string(count) + ", and all can be read");
    }
}

}  // namespace
}  // namespace holdfast::stores
