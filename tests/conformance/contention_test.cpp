// Many at once: threads on one Store object, and independent Store objects on the same data.
#include "conformance/store_conformance.hpp"
#include "support/run_settings.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <optional>
#include <set>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

/// Store objects for `count` contenders: independent ones where the store can be shared.
class Contenders {
public:
    Contenders(StoreHarness& harness, std::size_t count) {
        const bool is_shared = harness.store().properties().is_shared;
        for (std::size_t i = 0; i < count; ++i) {
            if (is_shared) opened_.push_back(must(harness.open_another()));
            stores_.push_back(is_shared ? opened_.back().get() : &harness.store());
        }
    }
    [[nodiscard]] std::size_t size() const { return stores_.size(); }
    [[nodiscard]] Store& operator[](std::size_t i) const { return *stores_[i]; }

private:
    std::vector<std::unique_ptr<Store>> opened_{};
    std::vector<Store*> stores_{};
};

}  // namespace

TEST_P(StoreConformance, OneOfManyContendersWinsEachRound) {
    const Contenders contenders(harness(), 4);
    const int rounds = scaled(50);
    std::barrier all(static_cast<std::ptrdiff_t>(contenders.size()));
    std::vector<std::vector<Reply>> replies(contenders.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < contenders.size(); ++i)
            threads.emplace_back([&, i] {
                for (int round = 0; round < rounds; ++round) {
                    all.arrive_and_wait();
                    replies[i].push_back(contenders[i].apply_one(
                        by("contender " + std::to_string(i), lock("round " + std::to_string(round)), 1h),
                        Deadline::never()));
                }
            });
    }
    for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
        const Lease winner = inspect(lock("round " + std::to_string(round))).lease.value();
        int won = 0;
        for (const auto& of_one : replies) {
            if (of_one[round]) {
                ++won;
                EXPECT_EQ(of_one[round]->lock.lease, winner);
            } else {
                ASSERT_THAT(of_one[round], RefusedWith(Errc::lock_conflict));
                EXPECT_EQ(of_one[round].error().holder->lease->lock_id, winner.lock_id);
            }
        }
        EXPECT_EQ(won, 1) << GetParam().name << " round " << round;
    }
}

// Atomic, so that a store that lets two in is seen in the counter and not in undefined behaviour.
TEST_P(StoreConformance, AHolderIsAlone) {
    const Contenders contenders(harness(), 4);
    const int turns = scaled(50);
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    std::vector<std::set<std::uint64_t>> tokens(contenders.size());
    std::vector<Reply> last(contenders.size(), Reply(fail(Errc::usage, "never asked")));
    const auto work = [&](std::size_t me) {
        for (int done = 0; done < turns;) {
            const Acquire mine = by("contender", lock("x"), 1h);
            const Reply reply = contenders[me].apply_one(mine, Deadline::never());
            if (!reply && reply.error().code == Errc::lock_conflict) {
                std::this_thread::yield();
                continue;
            }
            last[me] = reply;
            if (!reply) return;
            if (++inside != 1) ++overlaps;
            tokens[me].insert(reply->lock.token.value);
            --inside;
            last[me] = contenders[me].apply_one(release(mine), Deadline::never());
            if (!last[me]) return;
            ++done;
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < contenders.size(); ++i) threads.emplace_back(work, i);
    }
    EXPECT_THAT(last, testing::Each(Granted())) << "the last answer of each";
    EXPECT_EQ(overlaps, 0);
    std::set<std::uint64_t> different;
    for (const auto& of_one : tokens) different.insert(of_one.begin(), of_one.end());
    const auto total = contenders.size() * static_cast<std::size_t>(turns);
    EXPECT_EQ(different.size(), total) << "no token was given twice";
    EXPECT_EQ(inspect(lock("x")).seq, 2 * total);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, OfTwoLocksThatExcludeEachOtherOneIsGranted) {
    const Contenders contenders(harness(), 2);
    const int rounds = scaled(200);
    std::barrier both(2);
    std::vector<std::vector<bool>> won(2);
    const auto contend = [&](std::size_t me) {
        for (int round = 0; round < rounds; ++round) {
            const std::string suffix = std::to_string(round);
            Acquire mine = by("contender", lock((me == 0 ? "a" : "b") + suffix), 1h);
            mine.unless_held = {lock((me == 0 ? "b" : "a") + suffix)};
            both.arrive_and_wait();
            won[me].push_back(contenders[me].apply_one(mine, Deadline::never()).has_value());
        }
    };
    {
        const std::jthread first(contend, 0);
        const std::jthread second(contend, 1);
    }
    for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round)
        EXPECT_NE(won[0][round], won[1][round]) << GetParam().name << " round " << round;
}

// Locks that were used before: two that are new meet at the rows that both insert, whatever else protects them.
TEST_P(StoreConformance, OfTwoUsedLocksThatExcludeEachOtherOneIsHeldAtATime) {
    const Contenders contenders(harness(), 2);
    const std::array names{lock("a"), lock("b")};
    for (const LockName& name : names) {
        const Acquire before = by_carol(name, 1h);
        granted(before);
        granted(release(before));
    }
    const int rounds = scaled(100);
    std::barrier both(2);
    std::atomic<int> inside{0};
    std::atomic<int> together{0};
    std::atomic<int> nobody{0};
    std::array<std::optional<Error>, 2> wrong{};
    const auto contend = [&](std::size_t me) {
        for (int round = 0; round < rounds; ++round) {
            Acquire mine = by("contender", names[me], 1h);
            mine.unless_held = {names[1 - me]};
            both.arrive_and_wait();
            const Reply reply = contenders[me].apply_one(mine, Deadline::never());
            if (reply) ++inside;
            both.arrive_and_wait();
            if (me == 0 && inside > 1) ++together;
            if (me == 0 && inside == 0) ++nobody;
            both.arrive_and_wait();
            if (!reply && reply.error().code != Errc::lock_conflict) wrong[me] = reply.error();
            if (!reply) continue;
            --inside;
            const Reply released = contenders[me].apply_one(release(mine), Deadline::never());
            if (!released) wrong[me] = released.error();
        }
    };
    {
        const std::jthread first(contend, 0);
        const std::jthread second(contend, 1);
    }
    for (const auto& error : wrong) EXPECT_FALSE(error) << error->message;
    EXPECT_EQ(together, 0) << "rounds in which both held";
    EXPECT_EQ(nobody, 0) << "rounds in which each was refused for the other";
    for (const LockName& name : names) expect_whole_chain(name);
}

TEST_P(StoreConformance, TwoStealersOfOneExpiredLeaseGetOneGrant) {
    const Contenders contenders(harness(), 2);
    const int rounds = scaled(50);
    for (int round = 0; round < rounds; ++round) granted(by_alice(lock("round " + std::to_string(round)), 50ms));
    elapse(1s);
    std::barrier both(2);
    std::vector<std::vector<bool>> won(2);
    const auto steal = [&](std::size_t me) {
        for (int round = 0; round < rounds; ++round) {
            both.arrive_and_wait();
            won[me].push_back(contenders[me]
                                  .apply_one(by_bob(lock("round " + std::to_string(round))), Deadline::never())
                                  .has_value());
        }
    };
    {
        const std::jthread first(steal, 0);
        const std::jthread second(steal, 1);
    }
    for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round)
        EXPECT_NE(won[0][round], won[1][round]) << GetParam().name << " round " << round;
}

TEST_P(StoreConformance, ThreadsThatAskAtOnceGetTheirOwnAnswers) {
    granted(by_bob(lock("taken")));
    constexpr std::size_t count = 12;
    std::barrier all(static_cast<std::ptrdiff_t>(count));
    std::atomic<int> wrong = 0;
    const auto work = [&](std::size_t me) {
        const std::string who = "thread " + std::to_string(me);
        for (int round = 0; round < scaled(10); ++round) {
            const Acquire own = by(who, lock(who), 1h);
            // Batches of different sizes, so that an answer in the wrong place is seen.
            std::vector<Request> requests(me % 3, Request{by(who, lock("taken"), 1h)});
            requests.emplace_back(own);
            all.arrive_and_wait();
            const auto replies = store().apply(requests, Deadline::never());
            const bool right = replies && replies->size() == requests.size() && replies->back() &&
                               replies->back()->lock.lease->lock_id == own.as.lock_id &&
                               std::ranges::count_if(*replies, &Reply::has_value) == 1;
            if (!right || !store().apply_one(release(own), Deadline::never())) ++wrong;
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
    }
    EXPECT_EQ(wrong, 0) << GetParam().name;
}

TEST_P(StoreConformance, TwoStoreObjectsSeeEachOthersLocks) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " belongs to one Store object";
    const auto other = must(harness().open_another());
    const Acquire alice = by_alice(lock("x"));
    const Outcome mine = granted(alice);
    EXPECT_EQ(must(other->inspect(lock("x"), soon())), mine.lock);
    EXPECT_THAT(other->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(other->apply_one(release(alice), soon()), Granted()) << "the credentials count, not the object";
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
    EXPECT_EQ(other->info().store_id, store().info().store_id);
}

/// All changes of the lock compete with pruning, and the log still has each change once.
TEST_P(StoreConformance, PruningBesideChangesLosesNone) {
    constexpr std::size_t changers = 3;
    const Contenders contenders(harness(), changers + 1);
    const LockName name = lock("pruned");
    const int turns = scaled(20);
    std::atomic<std::uint64_t> events = 0;
    std::atomic<std::size_t> busy = changers;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < changers; ++i)
            threads.emplace_back([&, i] {
                Store& store = contenders[i];
                for (int done = 0; done < turns;) {
                    const Acquire mine = by("contender " + std::to_string(i), name, 1h);
                    if (!store.apply_one(mine, Deadline::never())) continue;
                    EXPECT_THAT(store.apply_one(release(mine), Deadline::never()), Granted());
                    events += 2;
                    ++done;
                }
                --busy;
            });
        threads.emplace_back([&] {
            while (busy > 0) {
                const auto before = must(contenders[changers].inspect(name, Deadline::never()));
                const auto pruned = contenders[changers].apply_one(Prune{name, before.seq, "root"}, Deadline::never());
                ASSERT_THAT(pruned, Granted());
                if (pruned->lock.pruned_seq > before.pruned_seq) ++events;
            }
        });
    }
    EXPECT_EQ(inspect(name).seq, events);
    expect_whole_chain(name);
}

}  // namespace holdfast::tests
