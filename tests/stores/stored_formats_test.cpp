// Goal: what older versions have stored stays readable, counts, and gets today's format with the first change, also if
// several clients make it at once. Method: stores that commit 8720ead wrote, loaded from text into real servers and
// files.
#include "client/verify.hpp"
#include "stores/stored_store.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <latch>
#include <map>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class StoreOf8720ead : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] client::Verified verified() const {
        return must(client::verify(*stored_.open(), std::nullopt, stored_.clock()));
    }
    [[nodiscard]] LockStatus inspect(std::string_view name) const {
        return must(stored_.open()->inspect(lock(name), stored_.soon()));
    }
    /// A waiter on a host does not outlive its boot, and the fixture is from another one.
    [[nodiscard]] static bool keeps_queue() { return GetParam() != "sqlite" && GetParam() != "file"; }
    [[nodiscard]] Renew renewal_of_held() const { return {lock("held"), stored_.holder(), lasting(1h)}; }

    const StoredStore stored_{GetParam()};
};

TEST_P(StoreOf8720ead, IsReadAsItIs) {
    const auto store = stored_.open();
    for (int time = 0; time < 2; ++time) {
        const LockStatus held = must(store->inspect(lock("held"), stored_.soon()));
        EXPECT_EQ(held.state, LockState::held);
        EXPECT_EQ(held.lease->holder.text, "builder-1");
        EXPECT_EQ(held.lease->reason, "release 42");
        EXPECT_EQ(held.waiters, keeps_queue() ? 1U : 0U);
    }
    EXPECT_EQ(inspect("released").state, LockState::free);
    EXPECT_EQ(inspect("taken/over").lease->holder.user, "bob");
    EXPECT_EQ(must(store->list({}, stored_.soon())).size(), 2U);
    const client::Verified all = verified();
    EXPECT_EQ(all.locks, 3U);
    EXPECT_EQ(all.events, 6U);
    const auto findings = store->examine(stored_.soon());
    EXPECT_TRUE(std::ranges::any_of(findings, [](const Finding& one) { return one.name == "format" && one.ok; }));
}

TEST_P(StoreOf8720ead, KeepsItsFormatWhenItIsReadAndGetsOursWithTheFirstChange) {
    const std::map<std::string, std::pair<std::string, std::string>> formats{
        {"sqlite", {"2", "3"}}, {"file", {"1", "2"}},  {"postgres", {"1", "3"}},
        {"mysql", {"1", "3"}},  {"redis", {"1", "2"}}, {"etcd", {"1", "2"}}};
    const auto& [older, ours] = formats.at(GetParam());
    {
        const auto store = stored_.open();
        must(store->inspect(lock("held"), stored_.soon()));
        must(store->list({.with_free = true}, stored_.soon()));
        EXPECT_EQ(must(store->history({}, stored_.soon())).size(), 6U);
        EXPECT_EQ(must(store->events({}, 100, stored_.soon())).events.size(), 6U);
        static_cast<void>(store->examine(stored_.soon()));
    }
    EXPECT_EQ(stored_.format(), older);
    must(stored_.open()->apply({}, stored_.soon()));
    EXPECT_EQ(stored_.format(), ours);
    EXPECT_EQ(verified().events, 6U);
}

TEST_P(StoreOf8720ead, ItsLeasesCountAndItsTokensRise) {
    const LockStatus held = inspect("held");
    const LockStatus released = inspect("released");
    const LockStatus taken_over = inspect("taken/over");
    const auto store = stored_.open();
    EXPECT_THAT(store->apply_one(by_bob(lock("taken/over")), stored_.soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(store->apply_one(renewal_of_held(), stored_.soon())).lock.token, held.token);
    EXPECT_GT(must(store->apply_one(by_bob(lock("released")), stored_.soon())).lock.token, released.token);
    EXPECT_THAT(store->apply_one(by_bob(lock("new")), stored_.soon()), Granted());
    EXPECT_EQ(inspect("taken/over").token, taken_over.token);
    must(store->apply_one(Release{lock("held"), stored_.holder()}, stored_.soon()));
    if (keeps_queue()) {
        const LockStatus handed_on = inspect("held");
        EXPECT_GT(handed_on.token, held.token);
        EXPECT_EQ(handed_on.lease->holder.user, "carol");
    } else {
        EXPECT_GT(must(store->apply_one(by_bob(lock("held")), stored_.soon())).lock.token, held.token);
    }
    const client::Verified all = verified();
    EXPECT_EQ(all.locks, 4U);
    EXPECT_EQ(all.events, 6U + 5U);
    EXPECT_TRUE(stored_.open()->info().was_used);
}

TEST_P(StoreOf8720ead, IsOneSoundStoreAfterManyHaveChangedItAtOnce) {
    constexpr std::size_t clients = 8;
    const auto store_id = stored_.open()->info().store_id;
    std::latch start(clients);
    std::vector<Reply> mine(clients, std::unexpected(Error{}));
    std::vector<Reply> contended = mine;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < clients; ++i)
            threads.emplace_back([&, i] {
                const auto store = stored_.open();
                start.arrive_and_wait();
                mine[i] = store->apply_one(by_bob(lock("mine/" + std::to_string(i))), stored_.soon());
                contended[i] = store->apply_one(by_bob(lock("released")), stored_.soon());
            });
    }
    EXPECT_THAT(mine, testing::Each(Granted()));
    EXPECT_EQ(std::ranges::count_if(contended, &Reply::has_value), 1);
    EXPECT_THAT(contended, testing::Each(testing::AnyOf(Granted(), RefusedWith(Errc::lock_conflict))));
    const auto store = stored_.open();
    EXPECT_EQ(store->info().store_id, store_id);
    EXPECT_TRUE(store->info().was_used);
    EXPECT_EQ(verified().events, 6U + clients + 1U);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreOf8720ead, testing::ValuesIn(StoredStore::kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
