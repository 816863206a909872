// What a store says of itself in `Store::properties` is true. The other files of the suite rely on it.
#include "conformance/store_conformance.hpp"
#include "holdfast/open.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, IsSharedByStoreObjectsIfItSaysSo) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const auto other = must(harness().open_another());
    EXPECT_EQ(other->properties().is_shared, properties().is_shared);
    EXPECT_EQ(must(other->inspect(lock("x"), soon())).state == LockState::held, properties().is_shared);
    EXPECT_EQ(other->store_id() == store().store_id(), properties().is_shared);
}

TEST_P(StoreConformance, ItsIdIsThatOfItsInfo) {
    must(store().apply({}, soon()));
    ASSERT_TRUE(store().store_id());
    EXPECT_EQ(store().store_id(), store().info().store_id);
    if (!properties().is_shared) return;
    // Also before anything else was asked of it.
    const auto other = must(harness().open_another());
    EXPECT_EQ(other->store_id(), store().store_id());
}

TEST_P(StoreConformance, ALeaseEndsWithItsStoreObjectOnlyWhereThereAreSessions) {
    const std::string url = harness().url();
    const bool has_parameters = url.find('?') != std::string::npos;
    const std::string with_session = fmt::format("{}{}session=on", url, has_parameters ? '&' : '?');
    auto bound = open_store(with_session, harness().clock());
    if (!properties().has_sessions) {
        EXPECT_THAT(bound, RefusedWith(Errc::usage));
        return;
    }
    ASSERT_THAT(bound, Granted());
    ASSERT_THAT((*bound)->apply_one(by_alice(lock("bound"), 1h), soon()), Granted());
    ASSERT_THAT(apply(by_alice(lock("free"), 1h)), Granted());
    EXPECT_THAT(apply(by_bob(lock("bound"))), RefusedWith(Errc::lock_conflict));
    must(harness().reopen());
    EXPECT_THAT(apply(by_bob(lock("free"))), RefusedWith(Errc::lock_conflict));

    bound->reset();
    // The server notices by itself that the session is gone. Only a Store object that has one may ask.
    const auto next = must(open_store(with_session, harness().clock()));
    Reply taken = next->apply_one(by_bob(lock("bound")), soon());
    for (const Deadline patient = Deadline::in(host_clock(), 30s); !taken && !patient.passed(host_clock());)
        taken = next->apply_one(by_bob(lock("bound")), soon());
    EXPECT_THAT(taken, Granted());
}

// The longest texts that a request may have make the largest record. A store that would cut or refuse it must say so
// here, and not when somebody needs it.
TEST_P(StoreConformance, TakesTheLargestRecordAndRefusesALargerOneCleanly) {
    Acquire alice = by_alice(lock(std::string(LockName::max_bytes, 'n')), 1h);
    alice.holder = {.text = std::string(255, 'h'), .user = std::string(255, 'u')};
    alice.operation = std::string(255, 'o');
    alice.reason = std::string(1024, 'r');
    alice.meta = {{"key", std::string(4093, 'm')}};
    for (int i = 0; i < 16; ++i) alice.unless_held.push_back(lock(fmt::format("{:{}}", i, LockName::max_bytes)));
    const std::size_t texts = LockName::max_bytes * 17 + 255 * 3 + 1024 + 4096;
    EXPECT_GT(properties().largest_value.value_or(texts + 1), texts);

    Acquire larger = alice;
    larger.meta["key"] += 'm';
    EXPECT_THAT(apply(larger), RefusedWith(Errc::usage));
    EXPECT_EQ(inspect(alice.name).seq, 0U);

    granted(alice);
    ASSERT_THAT(apply(renewal(alice)), Granted());
    const auto lease = inspect(alice.name).lease;
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->holder.text, alice.holder.text);
    EXPECT_EQ(lease->holder.user, alice.holder.user);
    EXPECT_EQ(lease->operation, alice.operation);
    EXPECT_EQ(lease->meta, alice.meta);
    expect_whole_chain(alice.name);
}

// On the real clock of the store: that of this suite, which a test moves, is as fine as anybody wants.
TEST_P(StoreConformance, ItsClockCountsAsFinelyAsItSays) {
    if (GetParam().is_daemon) GTEST_SKIP() << GetParam().name << " has no clock but that of the suite";
    const auto store = must(open_store(harness().url()));
    const auto resolution = store->properties().clock_resolution;
    const auto read = [&] { return must(store->inspect(lock("x"), Deadline::never())).as_of.time_since_epoch(); };
    for (int i = 0; i < 20; ++i) EXPECT_EQ(read() % resolution, 0ms);
    // A clock that is coarser shows no odd multiple, however often it is read.
    const Deadline patient = Deadline::in(host_clock(), 30s);
    while (read() / resolution % 2 == 0) ASSERT_FALSE(patient.passed(host_clock()));
}

// Nobody sees a half of what is committed as one.
TEST_P(StoreConformance, ABatchIsSeenAsAWholeWhereItIsCommittedAsOne) {
    if (!properties().commits_batches_as_one) GTEST_SKIP() << GetParam().name << " commits lock by lock";
    granted(by_carol(lock("other")));
    std::atomic<bool> is_over = false;
    std::atomic<int> looks = 0;
    const std::jthread reader([&] {
        while (!is_over) {
            const auto held = must(store().list({.prefix = "x/"}, soon()));
            EXPECT_TRUE(held.empty() || held.size() == 2) << held.size();
            ++looks;
        }
    });
    for (int round = 0; round < 50 || looks < 50; ++round) {
        const Acquire first = by_alice(lock("x/1"));
        const Acquire second = by_alice(lock("x/2"));
        for (const Reply& reply : must(store().apply(std::array<Request, 2>{first, second}, soon())))
            EXPECT_THAT(reply, Granted());
        for (const Reply& reply : must(store().apply(std::array<Request, 2>{release(first), release(second)}, soon())))
            EXPECT_THAT(reply, Granted());
    }
    is_over = true;
}

}  // namespace holdfast::tests
