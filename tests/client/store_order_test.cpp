// Goal: locks on several stores are taken in the order of the stores' ids, a thread that waits against that order is
// refused, and one store is not taken for two. Method: SQLite stores whose names sort the other way than their ids.

#include "client/join.hpp"
#include "client/store_identity.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class StoreOrder : public testing::Test {
protected:
    static Deadline soon() { return Deadline::in(host_clock(), 10s); }
    static HoldOptions waiting(std::chrono::milliseconds wait = 60s) {
        HoldOptions options;
        options.wait = wait;
        return options;
    }
    [[nodiscard]] std::unique_ptr<Store> open(const std::string& name) const {
        return must(open_store("sqlite:" + (folder_.path() / name).string() + "?sync=off"));
    }

    /// Two stores; the one that sorts first by its id sorts last by its URL.
    StoreOrder() {
        const auto ids = [&] {
            const auto one = open("one.db");
            const auto two = open("two.db");
            return must(client::identify(std::array{one.get(), two.get()}, host_clock()));
        }();
        const bool one_first = ids[0] < ids[1];
        move(one_first ? "one.db" : "two.db", "z.db");
        move(one_first ? "two.db" : "one.db", "a.db");
        first_ = open("z.db");
        second_ = open("a.db");
    }

    TempFolder folder_;
    std::unique_ptr<Store> first_;
    std::unique_ptr<Store> second_;

private:
    void move(const std::string& from, const std::string& to) const {
        for (const char* suffix : {"", "-wal", "-shm", "-gate"})
            if (std::filesystem::exists(folder_.path() / (from + suffix)))
                std::filesystem::rename(folder_.path() / (from + suffix), folder_.path() / (to + suffix));
    }
};

TEST_F(StoreOrder, OfAGroupIsThatOfTheStoreIdsThenOfTheNames) {
    const auto group =
        must(hold_all({{second_.get(), lock("a")}, {first_.get(), lock("b")}, {first_.get(), lock("a")}}));
    ASSERT_EQ(group.holds().size(), 3U);
    EXPECT_EQ(&group.holds()[0].store(), first_.get());
    EXPECT_EQ(group.holds()[0].name(), lock("a"));
    EXPECT_EQ(&group.holds()[1].store(), first_.get());
    EXPECT_EQ(&group.holds()[2].store(), second_.get());
    EXPECT_LT(*group.holds()[0].store_id(), *group.holds()[2].store_id());
}

TEST_F(StoreOrder, IsWhatAThreadThatWaitsIsHeldTo) {
    auto later = must(hold(*second_, lock("a"), waiting()));
    EXPECT_THAT(hold(*first_, lock("b"), waiting()), RefusedWith(Errc::usage));
    EXPECT_THAT(hold(*first_, lock("b"), waiting(0ms)), Granted()) << "who does not wait cannot deadlock";
    must(later.release());
    const auto earlier = must(hold(*first_, lock("b"), waiting()));
    EXPECT_THAT(hold(*second_, lock("a"), waiting()), Granted());
}

TEST_F(StoreOrder, KnowsAStoreThatWasOpenedTwice) {
    const auto again = open("a.db");
    const auto held = must(hold(*second_, lock("a"), waiting()));
    EXPECT_THAT(hold(*again, lock("a"), waiting()), RefusedWith(Errc::usage)) << "it would wait for itself";
    EXPECT_THAT(hold_all({{again.get(), lock("b")}, {second_.get(), lock("c")}}), RefusedWith(Errc::config));
}

TEST_F(StoreOrder, NeedsAStoreThatDoesNotExistYetAndMakesIt) {
    const auto fresh = open("new.db");
    EXPECT_FALSE(fresh->info().store_id);
    EXPECT_EQ(must(hold_all({{fresh.get(), lock("a")}, {first_.get(), lock("a")}})).holds().size(), 2U);
    EXPECT_TRUE(fresh->info().store_id);
}

TEST_F(StoreOrder, WhatIsHeldAlreadyBecomesPartOfTheGroupAndGoesWithARefusal) {
    must(second_->apply_one(by_bob(lock("z")), soon()));
    std::vector<Hold> held;
    held.push_back(must(hold(*first_, lock("a"))));
    EXPECT_THAT(hold_all({{second_.get(), lock("z")}}, std::move(held)), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(first_->inspect(lock("a"), soon())).state, LockState::free);

    std::vector<Hold> again;
    again.push_back(must(hold(*first_, lock("a"))));
    EXPECT_THAT(hold_all({{first_.get(), lock("a")}}, std::move(again)), RefusedWith(Errc::usage)) << "asked for twice";
}

TEST_F(StoreOrder, AJoinedLeaseIsProvedByItsKeyAndNotGivenBack) {
    const auto outer = must(hold(*first_, lock("a")));
    const auto prove = [&](const Credentials& as) {
        return client::JoinedLease::prove(*first_, lock("a"), as, {}, host_clock(), 10s);
    };
    EXPECT_THAT(prove({outer.credentials().lock_id, LeaseKey::random()}), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(prove(Credentials::random()), RefusedWith(Errc::lock_not_held));
    auto inner = must(must(prove(outer.credentials())).keep({}));
    EXPECT_EQ(inner.token(), outer.token());
    must(inner.release());
    EXPECT_EQ(must(first_->inspect(lock("a"), soon())).state, LockState::held);
}

TEST_F(StoreOrder, AJoinedLeaseIsNeverMadeShorter) {
    auto options = waiting();
    options.ttl = lasting(60s);
    const auto outer = must(hold(*first_, lock("a"), options));
    const auto ttl_with = [&](std::chrono::milliseconds at_least) {
        const client::JoinTerms terms{.at_least = lasting(at_least)};
        const auto joined =
            must(client::JoinedLease::prove(*first_, lock("a"), outer.credentials(), terms, host_clock(), 10s));
        return joined.ttl().time();
    };
    EXPECT_EQ(ttl_with(1s), 60s);
    EXPECT_EQ(ttl_with(90s), 90s);
}

TEST_F(StoreOrder, ALeaseThatCannotBeJoinedIsToldWithWhatBecameOfIt) {
    const auto refusal = [&](const Acquire& of) {
        return client::JoinedLease::prove(*first_, of.name, of.as, {}, host_clock(), 10s);
    };
    const auto brief = by_alice(lock("brief"), 60ms);
    must(first_->apply_one(brief, soon()));
    while (must(first_->inspect(brief.name, soon())).state == LockState::held) std::this_thread::yield();
    ASSERT_THAT(refusal(brief), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(refusal(brief).error().message, testing::HasSubstr("has run out"));

    must(first_->apply_one(by_bob(brief.name), soon()));
    ASSERT_THAT(refusal(brief), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(refusal(brief).error().message, testing::HasSubstr("is not the one that holds it now"));

    const auto given_back = by_alice(lock("given back"));
    must(first_->apply_one(given_back, soon()));
    must(first_->apply_one(release(given_back), soon()));
    ASSERT_THAT(refusal(given_back), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(refusal(given_back).error().message, testing::HasSubstr("nobody holds it now"));
}

}  // namespace
}  // namespace holdfast::tests
