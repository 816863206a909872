// Goal: one leader at a time, whom all observers see, with what it proclaims. Method: candidates and observers on the
// memory store, behind a line that can be cut. With servers: tests/stores/election_outage_test.cpp.

#include "holdfast/election.hpp"

#include "client/faulty_store.hpp"
#include "client/watching.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <mutex>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class ElectionTest : public testing::Test {
protected:
    static Deadline soon() { return Deadline::in(host_clock(), 10s); }
    static HoldOptions named(std::string_view name, std::chrono::milliseconds ttl = 60s) {
        HoldOptions options;
        options.holder = {std::string(name), ""};
        options.ttl = lasting(ttl);
        return options;
    }
    /// What observers are told, in words: the leader's value, `nobody`, or the code of the error.
    LeaderSeen remember() {
        return [this](const Result<std::optional<Leader>>& seen) {
            const std::scoped_lock guard(mutex_);
            const std::string leader = !seen   ? std::string(row_of(seen.error().code).name)
                                       : *seen ? (*seen)->value
                                               : "nobody";
            told_.push_back(leader);
        };
    }
    [[nodiscard]] std::string last_told() {
        const std::scoped_lock guard(mutex_);
        return told_.empty() ? "" : told_.back();
    }
    void await(const std::string& told) {
        ASSERT_TRUE(becomes_true([&] { return last_told() == told; })) << last_told() << " instead of " << told;
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    const Election election_{store_, lock("leader/billing")};
    std::mutex mutex_;
    std::vector<std::string> told_;  ///< Guarded by mutex_.
};

TEST_F(ElectionTest, NobodyLeadsUntilSomebodyCampaigns) {
    EXPECT_FALSE(must(election_.leader(soon())));
    const auto term = must(election_.campaign("10.0.0.7:80", named("one")));
    const auto leader = must(election_.leader(soon()));
    ASSERT_TRUE(leader);
    EXPECT_EQ(leader->value, "10.0.0.7:80");
    EXPECT_EQ(leader->holder.text, "one");
    EXPECT_EQ(leader->token, term.token());
    EXPECT_EQ(leader->lock_id, term.hold().credentials().lock_id);
}

TEST_F(ElectionTest, TheNextLeadsWhenTheLeaderResigns) {
    auto first = must(election_.campaign("one", named("one")));
    FencingToken second_token;
    std::jthread candidate([&] { second_token = must(election_.campaign("two", named("two"))).token(); });
    ASSERT_TRUE(becomes_true([&] { return must(inner_->inspect(lock("leader/billing"), soon())).waiters == 1; }));
    EXPECT_THAT(first.resign(), Granted());
    candidate.join();
    EXPECT_GT(second_token, first.token());
    EXPECT_FALSE(must(election_.leader(soon()))) << "a term ends with its object";
}

TEST_F(ElectionTest, WhatIsProclaimedStaysAcrossRenewals) {
    auto options = named("one");
    options.meta = {{"zone", "b"}};
    options.renew_interval = 20ms;
    std::atomic<int> renewals = 0;
    options.observer = [&](const HoldEvent& event) {
        if (event.kind == HoldEventKind::renewed) ++renewals;
    };
    auto term = must(election_.campaign("starting", options));
    EXPECT_THAT(term.proclaim("ready"), Granted());
    EXPECT_EQ(term.value(), "ready");
    const int before = renewals;
    ASSERT_TRUE(becomes_true([&] { return renewals > before + 1; }));
    EXPECT_EQ(must(election_.leader(soon()))->value, "ready");
    EXPECT_EQ(must(inner_->inspect(lock("leader/billing"), soon())).lease->meta.at("zone"), "b");
    EXPECT_THAT(term.proclaim(std::string(5000, 'x')), RefusedWith(Errc::usage));
    EXPECT_EQ(term.value(), "ready");
}

TEST_F(ElectionTest, AFormerLeaderProclaimsNothing) {
    auto former = must(election_.campaign("one", named("one")));
    const LockId term = former.hold().credentials().lock_id;
    must(inner_->apply_one(Break{lock("leader/billing"), term, "operator", "stuck"}, soon()));
    ASSERT_TRUE(becomes_true([&] { return former.lost().stop_requested(); }));
    const auto next = must(election_.campaign("two", named("two")));
    EXPECT_THAT(former.proclaim("still me"), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(must(election_.leader(soon()))->value, "two");
}

TEST_F(ElectionTest, ObserversAreToldOfTermsAndOfWhatIsProclaimed) {
    const auto watch = must(election_.observe(remember()));
    await("nobody");
    auto first = must(election_.campaign("one", named("one")));
    await("one");
    must(first.proclaim("one, ready"));
    await("one, ready");
    must(first.resign());
    await("nobody");
    const auto second = must(election_.campaign("two", named("two")));
    await("two");
    const std::scoped_lock guard(mutex_);
    EXPECT_THAT(told_, testing::ElementsAre("nobody", "one", "one, ready", "nobody", "two"))
        << "a renewal is nothing new";
}

TEST_F(ElectionTest, ObserversAreToldThatTheStoreIsAwayAndOfItsReturn) {
    const auto term = must(election_.campaign("one", named("one")));
    const auto watch = must(election_.observe(remember()));
    await("one");
    store_.cut();
    await("E_STORE_UNAVAILABLE");
    store_.heal();
    await("one");
    const std::scoped_lock guard(mutex_);
    EXPECT_THAT(told_, testing::ElementsAre("one", "E_STORE_UNAVAILABLE", "one"));
}

TEST_F(ElectionTest, ACandidateCanGiveUp) {
    const auto leader = must(election_.campaign("one", named("one")));
    std::stop_source cancel;
    std::jthread candidate([&] {
        auto options = named("two");
        options.cancel = cancel.get_token();
        EXPECT_THAT(election_.campaign("two", options), RefusedWith(Errc::cancelled));
    });
    ASSERT_TRUE(becomes_true([&] { return must(inner_->inspect(lock("leader/billing"), soon())).waiters == 1; }));
    cancel.request_stop();
    candidate.join();
    EXPECT_EQ(must(inner_->inspect(lock("leader/billing"), soon())).waiters, 0U);
}

}  // namespace
}  // namespace holdfast::tests
