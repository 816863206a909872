// Goal: pruned audit events mislead no client: neither one that repeats a request after a lost answer, nor one that
// reads the log meanwhile, nor one that predicts from its cache. Method: a proxy before a real etcd, and a second store
// that prunes while the first one waits for an answer.

#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline patient() { return Deadline::in(host_clock(), 30s); }

class EtcdPrune : public testing::Test {
protected:
    ~EtcdPrune() override { EtcdByHand(shared_server_port("etcd")).remove_all(prefix_ + "/"); }

    [[nodiscard]] std::unique_ptr<Store> open(std::uint16_t port) const {
        return must(open_store(fmt::format("etcd://127.0.0.1:{}/{}", port, prefix_)));
    }
    [[nodiscard]] std::uint64_t seq() { return must(direct_->inspect(name_, patient())).seq; }
    void change(const Request& request) { must(direct_->apply_one(request, patient())); }
    void prune(std::uint64_t through) { change(Prune{name_, through, "root"}); }
    /// So many events, of which the first is a grant to `alice_`.
    void fill(std::size_t count) {
        std::vector<Request> requests{alice_};
        while (requests.size() < count) requests.emplace_back(renewal(alice_));
        EXPECT_THAT(must(direct_->apply(requests, patient())), testing::Each(Granted()));
    }
    [[nodiscard]] Result<void> verified(const std::vector<AuditEvent>& events) {
        return verify_chain(events, must(direct_->inspect(name_, patient())));
    }

    const LockName name_ = lock("x");
    const Acquire alice_ = by_alice(name_, 1h);
    const std::string prefix_ = "prune-" + LockId::random().text();
    Proxy proxy_{shared_server_port("etcd")};
    const std::unique_ptr<Store> direct_ = open(shared_server_port("etcd"));
    const std::unique_ptr<Store> store_ = open(proxy_.port());
};

// The event is the proof that a change was made. Without it the same would be done once more.
TEST_F(EtcdPrune, AChangeWhoseProofIsPrunedBeforeItsAnswerComesIsUnknown) {
    // With a look before the change, and with a guess.
    for (const bool remembers : {false, true}) {
        SCOPED_TRACE(remembers);
        change(alice_);
        if (remembers) must(store_->apply_one(renewal(alice_), patient()));
        const std::uint64_t own = seq() + 1;
        proxy_.arrange_when([&] {
            if (seq() < own) return false;
            // The newest one cannot be pruned, and this one is when the first Prune was.
            prune(own - 1);
            prune(own);
            return true;
        });
        EXPECT_THAT(store_->apply_one(renewal(alice_), patient()), RefusedWith(Errc::outcome_unknown));
        ASSERT_TRUE(proxy_.has_happened());
        EXPECT_EQ(seq(), own + 2) << "it was not done again";
        EXPECT_THAT(store_->apply_one(renewal(alice_), patient()), Granted());
    }
}

TEST_F(EtcdPrune, AChangeIsRecognisedAlthoughThoseBeforeItWerePruned) {
    fill(4);
    must(store_->apply_one(renewal(alice_), patient()));
    const std::uint64_t own = seq() + 1;
    proxy_.arrange_when([&] {
        if (seq() < own) return false;
        prune(own - 1);
        return true;
    });
    EXPECT_THAT(store_->apply_one(renewal(alice_), patient()), Granted());
    ASSERT_TRUE(proxy_.has_happened());
    EXPECT_EQ(seq(), own + 1);

    // A Prune itself.
    proxy_.arrange_when([&] { return seq() > own + 1; });
    EXPECT_THAT(store_->apply_one(Prune{name_, own, "root"}, patient()), Granted());
    ASSERT_TRUE(proxy_.has_happened());
    EXPECT_EQ(seq(), own + 2) << "once";
    EXPECT_THAT(verified(must(store_->history({.name = name_}, patient()))), Granted());
}

// A long log is read in several pages.
TEST_F(EtcdPrune, ALogThatIsPrunedWhileItIsReadIsWhole) {
    fill(1300);
    // Only what has been read already, and also what has not.
    for (const std::uint64_t through : {300U, 800U}) {
        SCOPED_TRACE(through);
        proxy_.arrange_when([&, done = false]() mutable {
            if (!std::exchange(done, true)) prune(through);
            return false;
        });
        const auto events = must(store_->history({.name = name_}, patient()));
        EXPECT_EQ(events.front().seq, through + 1);
        EXPECT_THAT(verified(events), Granted());
    }
    proxy_.arrange_when([&, done = false]() mutable {
        if (!std::exchange(done, true)) prune(810);
        return false;
    });
    const auto oldest =
        must(store_->history({.name = name_, .limit = 505, .which = HistoryQuery::Which::oldest}, patient()));
    EXPECT_EQ(oldest.size(), 493U) << "all that are left";
    EXPECT_EQ(oldest.front().seq, 811U);
}

// Each remembers how it left the lock, and prunes without a look.
TEST_F(EtcdPrune, WhatAStoreRemembersDoesNotLetItPruneAnythingElse) {
    fill(20);
    std::uint64_t through = 0;
    for (int round = 0; round < 4; ++round) {
        for (Store* store : {direct_.get(), store_.get()}) {
            ++through;
            EXPECT_EQ(must(store->apply_one(Prune{name_, through, "root"}, patient())).lock.pruned_seq, through);
            const auto events = must(direct_->history({.name = name_}, patient()));
            EXPECT_EQ(events.front().seq, through + 1);
            EXPECT_THAT(verified(events), Granted());
        }
    }
    const std::uint64_t before = seq();
    EXPECT_EQ(must(store_->apply_one(Prune{name_, through, "root"}, patient())).lock.pruned_seq, through);
    EXPECT_EQ(seq(), before) << "there was nothing left to be done";
}

TEST_F(EtcdPrune, ABatchOfThemMayBeLargerThanATransaction) {
    std::vector<Request> requests;
    const auto name = [](int i) { return lock(fmt::format("lock {:03}", i)); };
    for (int i = 0; i < 150; ++i) {
        const Acquire mine = by_alice(name(i), 1h);
        requests.insert(requests.end(), {mine, renewal(mine), renewal(mine)});
    }
    EXPECT_THAT(must(direct_->apply(requests, patient())), testing::Each(Granted()));
    requests.clear();
    for (int i = 0; i < 150; ++i) requests.emplace_back(Prune{name(i), 2, "root"});
    // From a look, and from what is remembered.
    EXPECT_THAT(must(store_->apply(requests, patient())), testing::Each(Granted()));
    for (Request& request : requests) std::get<Prune>(request).through = 3;
    EXPECT_THAT(must(store_->apply(requests, patient())), testing::Each(Granted()));
    EXPECT_EQ(must(store_->history({}, patient())).size(), 300U) << "two Prunes of each";
}

}  // namespace
}  // namespace holdfast::tests
