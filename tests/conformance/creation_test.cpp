// A store is created by its first use, and only once, also by several clients at the same time.
#include "conformance/store_conformance.hpp"
#include "holdfast/open.hpp"

#include <filesystem>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, ALockThatWasNeverUsedIsFreeAndLookingCreatesNothing) {
    LockStatus blank{.name = lock("never")};
    blank.as_of = now();
    EXPECT_EQ(inspect(lock("never")), blank);
    EXPECT_THAT(must(store().list({.with_free = true}, soon())), testing::IsEmpty());
    EXPECT_THAT(history(lock("never")), testing::IsEmpty());
    EXPECT_THAT(must(store().history({}, soon())), testing::IsEmpty());
    const bool may_be_there = !properties().is_shared || GetParam().is_daemon;
    EXPECT_TRUE(may_be_there || !store().info().store_id) << "nothing was written that could have an id";

    granted(by_alice(lock("other")));
    EXPECT_EQ(inspect(lock("never")), blank);
    EXPECT_EQ(must(store().list({.with_free = true}, soon())).size(), 1U);
}

TEST_P(StoreConformance, AnEmptyBatchCreatesTheStoreAndGivesItAnId) {
    EXPECT_THAT(must(store().apply({}, soon())), testing::IsEmpty());
    const auto id = store().info().store_id;
    ASSERT_TRUE(id);
    EXPECT_NE(*id, StoreId{});
    EXPECT_THAT(must(store().list({.with_free = true}, soon())), testing::IsEmpty());
    if (!properties().is_shared) return;
    ASSERT_THAT(harness().reopen(), Granted());
    EXPECT_EQ(store().info().store_id, id);
}

TEST_P(StoreConformance, TwoStoresHaveDifferentIds) {
    const auto other = must(GetParam().start());
    must(store().apply({}, soon()));
    must(other->store().apply({}, soon()));
    EXPECT_NE(store().info().store_id, other->store().info().store_id);
}

TEST_P(StoreConformance, FirstUsesAtTheSameMomentMakeOneStore) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " belongs to one Store object";
    for (int round = 0; round < 10; ++round) {
        const auto fresh = must(GetParam().start());
        std::vector<std::unique_ptr<Store>> stores;
        for (int i = 0; i < 4; ++i) stores.push_back(must(fresh->open_another()));
        std::vector<Reply> replies(stores.size(), fail(Errc::usage, "never asked"));
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < stores.size(); ++i)
                threads.emplace_back([&, i] {
                    replies[i] = stores[i]->apply_one(by_alice(lock("x" + std::to_string(i))), Deadline::never());
                });
        }
        EXPECT_THAT(replies, testing::Each(Granted()));
        for (const auto& one : stores) EXPECT_EQ(one->info().store_id, stores.front()->info().store_id);
        EXPECT_EQ(must(fresh->store().list({}, Deadline::never())).size(), stores.size());
    }
}

TEST_P(StoreConformance, FirstUsesByThreadsOfOneStoreAtTheSameMomentAllSucceed) {
    // A thread that found nothing, while another one created the store, must not take it for a store that is gone.
    constexpr int threads_at_once = 32;
    for (int round = 0; round < 10; ++round) {
        const auto fresh = must(GetParam().start());
        std::vector<Reply> replies(threads_at_once, fail(Errc::usage, "never asked"));
        {
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < threads_at_once; ++i)
                threads.emplace_back([&, i] {
                    replies[i] = fresh->store().apply_one(by_alice(lock("x" + std::to_string(i))), Deadline::never());
                });
        }
        EXPECT_THAT(replies, testing::Each(Granted()));
    }
}

TEST_P(StoreConformance, EverythingIsThereAfterReopening) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " forgets when it is closed";
    Acquire alice = by_alice(lock("x"), 1h);
    alice.meta = {{"a", "1"}};
    alice.max_hold = 2h;
    granted(alice);
    elapse(1s);
    granted(renewal(alice));
    granted(by_bob(lock("y")));
    const auto locks = must(store().list({.with_free = true}, soon()));
    const auto events = must(store().history({}, soon()));

    ASSERT_THAT(harness().reopen(), Granted());

    EXPECT_EQ(must(store().list({.with_free = true}, soon())), locks);
    EXPECT_EQ(must(store().history({}, soon())), events);
    EXPECT_THAT(apply(renewal(alice)), Granted());
}

TEST_P(StoreConformance, TheInfoNamesTheStoreAndItsGrade) {
    must(store().apply({}, soon()));
    const StoreInfo info = store().info();
    EXPECT_TRUE(info.url.starts_with(GetParam().scheme() + ":")) << info.url;
    EXPECT_FALSE(info.reasons.empty());
    EXPECT_NE(info.grade, Grade::c) << "a store of grade C must be asked for aloud";
}

TEST_P(StoreConformance, AHealthyStoreExaminesWell) {
    const std::string url = harness().url();
    const auto durable = must(open_store(url.substr(0, url.find('?')), harness().clock()));
    must(durable->apply({}, soon()));
    const auto findings = durable->examine(soon());
    EXPECT_FALSE(findings.empty());
    for (const Finding& finding : findings) EXPECT_TRUE(finding.ok) << finding.name << ": " << finding.detail;
}

TEST_P(StoreConformance, AnUnknownParameterIsRefusedRatherThanIgnored) {
    const std::string url = harness().url();
    const std::string misspelt = url + (url.find('?') == std::string::npos ? "?" : "&") + "sinc=off";
    EXPECT_THAT(open_store(misspelt, harness().clock()), RefusedWith(Errc::usage));
}

}  // namespace holdfast::tests
