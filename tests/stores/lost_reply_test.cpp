// Goal: what a server did is done once, although its answer never came. Method: a proxy stands before the server and
// drops an answer when the change is there, or any message of any request; repeating the same request shows what
// happened.
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/proxy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class LostReply : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static Deadline soon() { return Deadline::in(host_clock(), 20s); }
    [[nodiscard]] Reply ask(const Request& request) { return store_->apply_one(request, soon()); }
    [[nodiscard]] LockStatus status() { return must(direct_->inspect(name_, soon())); }

    /// So many grants and no others, each with a higher token than the one before.
    void expect_grants(int expected) {
        const auto events = must(direct_->history({.name = name_}, soon()));
        EXPECT_THAT(verify_chain(events, status()), Granted());
        int grants = 0;
        FencingToken highest{};
        for (const AuditEvent& event : events) {
            const bool is_grant = event.kind == EventKind::acquired || event.kind == EventKind::stolen;
            grants += is_grant ? 1 : 0;
            EXPECT_TRUE(is_grant ? event.token > highest : event.token == highest) << "event " << event.seq;
            highest = event.token;
        }
        EXPECT_EQ(grants, expected);
    }

    const LockName name_ = lock("x");
    const ServerPlace place_{GetParam()};
    Proxy proxy_{place_.port()};
    const std::unique_ptr<Store> direct_ = must(open_store(place_.url()));
    const std::unique_ptr<Store> store_ = must(open_store(place_.url(proxy_.port())));
};

TEST_P(LostReply, OfAGrantIsNoSecondGrant) {
    must(direct_->apply({}, soon()));
    int unknown = 0;
    const int rounds = scaled(500);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const Acquire mine = by_alice(name_, 1h);
        proxy_.arrange_when([&] { return status().state == LockState::held; });
        const Reply reply = ask(mine);
        ASSERT_TRUE(proxy_.has_happened());
        EXPECT_TRUE(reply || reply.error().code == Errc::outcome_unknown) << reply.error().message;
        unknown += reply ? 0 : 1;

        const Reply other = direct_->apply_one(by_bob(name_, 1h), soon());
        ASSERT_THAT(other, RefusedWith(Errc::lock_conflict));
        const Outcome again = must(ask(mine));
        EXPECT_EQ(other.error().holder->lease->lock_id, mine.as.lock_id);
        EXPECT_EQ(other.error().holder->token, again.lock.token) << "the same request again is the same grant";
        must(ask(release(mine)));
    }
    expect_grants(rounds);
    fmt::print("{}: {} answers lost after the grant, {} calls ended unknown, the others found out by themselves\n",
               GetParam(), rounds, unknown);
}

// There is nobody left to ask, and what was sent before may have been done.
TEST_P(LostReply, TogetherWithItsServerLeavesTheOutcomeUnknown) {
    must(direct_->apply({}, soon()));
    int lost = 0;
    int rounds = 0;
    for (; lost < 5 && rounds < 50 && !HasFailure(); ++rounds) {
        const Acquire mine = by_alice(name_, 1h);
        // On a connection that is there.
        must(store_->inspect(name_, soon()));
        proxy_.arrange_when([&] { return status().state == LockState::held; }, Fate::lose_server);
        const Reply reply = store_->apply_one(mine, Deadline::in(host_clock(), 300ms));
        // A client that left before its answer has left no connection whose answer could still be lost.
        proxy_.reset();
        if (!proxy_.has_happened()) {
            proxy_.arrange_nothing();
            must(ask(mine));
            must(ask(release(mine)));
            continue;
        }
        ++lost;
        EXPECT_THAT(reply, RefusedWith(Errc::outcome_unknown));
        EXPECT_THAT(store_->apply_one(by_bob(lock("y")), Deadline::in(host_clock(), 300ms)),
                    RefusedWith(Errc::store_unavailable));
        proxy_.come_back();
        EXPECT_EQ(must(ask(mine)).lock.lease->lock_id, mine.as.lock_id);
        must(ask(release(mine)));
    }
    EXPECT_EQ(lost, 5) << "this machine is too busy for anybody to be answered in time";
    expect_grants(rounds);
    EXPECT_EQ(must(direct_->inspect(lock("y"), soon())).seq, 0U) << "what was never sent was never done";
}

TEST_P(LostReply, OrRequestOfAnyKindIsRepeatedUntilItIsKnown) {
    std::mt19937_64 random(seed_of("lost messages/" + GetParam()));
    must(direct_->apply({}, soon()));
    std::map<Errc, int> endings;
    int losses = 0;
    // With one message of it lost; the first answer, and the one that is sure.
    const auto disturbed = [&](const Request& request) {
        const std::uint64_t seq = status().seq;
        proxy_.arrange(1 + random() % 3, random() % 2 == 0 ? Fate::lose_reply : Fate::lose_request);
        const Reply first = ask(request);
        losses += proxy_.has_happened() ? 1 : 0;
        proxy_.arrange_nothing();
        if (first) return std::pair(first, first);
        ++endings[first.error().code];
        EXPECT_THAT(first.error().code, testing::AnyOf(Errc::store_unavailable, Errc::outcome_unknown));
        EXPECT_TRUE(first.error().code == Errc::outcome_unknown || status().seq == seq) << "something was changed";
        return std::pair(first, ask(request));
    };
    const int rounds = scaled(60);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const Acquire mine = by_alice(name_, 1h);
        const auto granted = disturbed(mine).second;
        ASSERT_THAT(granted, Granted());
        const auto renewed = disturbed(renewal(mine)).second;
        ASSERT_THAT(renewed, Granted());
        EXPECT_EQ(renewed->lock.token, granted->lock.token);
        const auto [first, released] = disturbed(release(mine));
        const bool in_doubt = !first && first.error().code == Errc::outcome_unknown;
        EXPECT_TRUE(released || (in_doubt && released.error().code == Errc::lock_not_held));
        EXPECT_EQ(status().state, LockState::free);
    }
    expect_grants(rounds);
    fmt::print("{}: {} messages lost, {} calls ended unknown, {} unavailable\n", GetParam(), losses,
               endings[Errc::outcome_unknown], endings[Errc::store_unavailable]);
    EXPECT_GT(losses, 0);
}

// A server that is there and says nothing holds nobody up for longer than there is time.
TEST_P(LostReply, ThatNeverComesEndsTheCallAtItsDeadlineAndIsFoundOutLater) {
    must(direct_->apply({}, soon()));
    for (std::uint64_t message = 1; message <= 2; ++message) {
        SCOPED_TRACE(testing::Message() << "message " << message);
        const Acquire mine = by_alice(name_, 1h);
        must(store_->inspect(name_, soon()));
        proxy_.arrange(message, Fate::no_reply, 100);
        const Reply silent = store_->apply_one(mine, Deadline::in(host_clock(), 200ms));
        EXPECT_TRUE(!silent || message == 2) << "nobody has answered";
        if (!silent) {
            EXPECT_THAT(silent.error().code, testing::AnyOf(Errc::store_unavailable, Errc::outcome_unknown));
        }
        proxy_.arrange_nothing();
        proxy_.cut();
        if (!silent && silent.error().code == Errc::store_unavailable) {
            EXPECT_EQ(status().state, LockState::free) << "what was not done was done";
        }
        EXPECT_EQ(must(ask(mine)).lock.lease->lock_id, mine.as.lock_id);
        must(ask(release(mine)));
    }
    expect_grants(2);
}

// A store that has just given the lock back decides by what it remembers, and has to find out afterwards whether that
// was so. What it decided is no answer when somebody else has changed the lock meanwhile.
TEST_P(LostReply, WithACachedLockIsNoGrantOfWhatAnotherHolds) {
    std::mt19937_64 random(seed_of("lost with a competitor/" + GetParam()));
    const auto rest = [&](const Request& request) {
        proxy_.arrange(1 + random() % 2, random() % 2 == 0 ? Fate::lose_reply : Fate::lose_request);
        const Reply reply = ask(request);
        proxy_.arrange_nothing();
        return reply;
    };
    const int rounds = scaled(12);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const Acquire before = by_alice(name_, 1h);
        must(ask(before));
        must(ask(renewal(before)));
        if (round % 2 == 0)
            must(ask(release(before)));
        else
            must(direct_->apply_one(Break{name_, before.as.lock_id, "root", "it is needed"}, soon()));
        const Acquire others = by_bob(name_, 1h);
        const FencingToken token = must(direct_->apply_one(others, soon())).lock.token;

        const Acquire mine = by_alice(name_, 1h);
        const std::array<Request, 3> requests{mine, renewal(before), release(before)};
        const Reply reply = rest(requests[round % 2 == 0 ? 0 : 1 + random() % 2]);
        EXPECT_FALSE(reply) << "what was decided by what the store remembered is told for true";
        const LockStatus now = status();
        ASSERT_TRUE(now.lease);
        EXPECT_EQ(now.lease->lock_id, others.as.lock_id);
        EXPECT_EQ(now.token, token);
        must(direct_->apply_one(release(others), soon()));
    }
    EXPECT_THAT(verify_chain(must(direct_->history({.name = name_}, soon())), status()), Granted());
}

// What others did since then hides what became of the change, and to make it again would take back what they did.
TEST_P(LostReply, WhileOthersBreakAndUseTheLockIsNotMadeUpForByASecondGrant) {
    must(direct_->apply({}, soon()));
    const int rounds = scaled(4);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const Acquire before = by_alice(name_, 1h);
        must(ask(before));
        must(ask(release(before)));
        const Acquire mine = by_alice(name_, 1h);
        proxy_.arrange_when([&] {
            if (status().state != LockState::held) return false;
            must(direct_->apply_one(Break{name_, mine.as.lock_id, "root", "it is needed"}, soon()));
            // The record speaks only of the last lease that ended, so nothing in it shows that there was ours.
            const Acquire others = by_bob(name_, 1h);
            must(direct_->apply_one(others, soon()));
            must(direct_->apply_one(release(others), soon()));
            return true;
        });
        const Reply reply = ask(mine);
        ASSERT_TRUE(proxy_.has_happened());
        EXPECT_TRUE(reply || reply.error().code == Errc::outcome_unknown) << reply.error().message;
        EXPECT_EQ(status().state, LockState::free);
        const auto events = must(direct_->history({.name = name_}, soon()));
        EXPECT_EQ(std::ranges::count(events, mine.as.lock_id, &AuditEvent::lock_id), 2) << "granted and broken";
    }
}

INSTANTIATE_TEST_SUITE_P(Servers, LostReply, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
