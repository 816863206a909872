// Goal: all stores follow the one protocol. Method: random histories run on each store and, under the
// same clock, on the memory store, which does nothing but call the kernel. Every answer must agree, and so
// must everything that can be read afterwards. HOLDFAST_SEED replays a history that failed.
#include "conformance/cases.hpp"
#include "conformance/random_history.hpp"
#include "holdfast/audit.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/run_settings.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

class Differential : public testing::TestWithParam<StoreCase> {};

/// How often things happened, to see that the histories are not about nothing.
struct Bite {
    int granted = 0;
    int refused = 0;
    int stolen = 0;
    int queued = 0;
    int announced = 0;  ///< Leases that an Expire kept,
    int handed_on = 0;  ///< and those in whose place it put a waiter.
};

template <class Kind>
void come_from(Kind& request, const char* address) {
    if constexpr (requires { request.sender; }) request.sender.address = address;
}

/// One history on two stores. Stops at the first difference, which is what matters.
class Race {
public:
    Race(const StoreCase& store_case, std::uint64_t seed, Bite& bite)
        : history_(seed),
          bite_(bite),
          harness_(must(store_case.start())),
          model_(must(open_store("memory:", harness_->clock()))) {}

    void run(int steps) {
        for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
            SCOPED_TRACE("step " + std::to_string(step));
            if (history_.once_in(5)) {
                harness_->elapse(history_.pause());
            } else if (harness_->store().properties().is_shared && history_.once_in(30)) {
                ASSERT_THAT(harness_->reopen(), Granted());
            } else if (history_.once_in(20)) {
                compare_reading();
            } else {
                compare_batch();
            }
        }
        compare_reading();
    }

private:
    void compare_batch() {
        std::vector<Request> requests = history_.batch();
        // A daemon says what it sees, whatever its client says; the others are told the same.
        for (Request& request : requests) std::visit([](auto& r) { come_from(r, "127.0.0.1"); }, request);
        const auto replies = must(harness_->store().apply(requests, Deadline::never()));
        const auto expected = must(model_->apply(requests, Deadline::never()));
        ASSERT_EQ(replies.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            SCOPED_TRACE(testing::Message() << "request " << i << " of kind " << requests[i].index());
            compare(replies[i], expected[i]);
            if (expected[i] && std::holds_alternative<Expire>(requests[i]))
                ++(expected[i]->lock.state == LockState::held ? bite_.handed_on : bite_.announced);
            history_.learn(requests[i], expected[i]);
        }
    }

    void compare(const Reply& reply, const Reply& expected) {
        ASSERT_EQ(reply.has_value(), expected.has_value())
            << testing::PrintToString(reply) << "\nexpected " << testing::PrintToString(expected);
        if (expected) {
            ++bite_.granted;
            if (expected->stolen_from) ++bite_.stolen;
            EXPECT_EQ(*reply, *expected);
            return;
        }
        ++bite_.refused;
        const Error& mine = reply.error();
        const Error& theirs = expected.error();
        EXPECT_EQ(mine.code, theirs.code) << mine.message << "\nexpected " << theirs.message;
        EXPECT_EQ(mine.retry_after, theirs.retry_after);
        ASSERT_EQ(mine.holder == nullptr, theirs.holder == nullptr);
        if (theirs.holder && theirs.holder->waiters > 0) ++bite_.queued;
        if (theirs.holder) {
            EXPECT_EQ(*mine.holder, *theirs.holder);
        }
    }

    void compare_reading() {
        Store& store = harness_->store();
        for (const LockName& name : RandomHistory::names()) {
            const LockStatus status = must(store.inspect(name, Deadline::never()));
            EXPECT_EQ(status, must(model_->inspect(name, Deadline::never())));
            const auto events = must(store.history({.name = name}, Deadline::never()));
            EXPECT_EQ(events, must(model_->history({.name = name}, Deadline::never())));
            EXPECT_THAT(verify_chain(events, status), Granted());
        }
        const Instant now = harness_->clock().wall();
        ListQuery list{.prefix = history_.once_in(2) ? "" : "b", .with_free = history_.once_in(2)};
        if (history_.once_in(2)) list.changed_since = now - history_.pause();
        if (history_.once_in(3)) list.after = history_.once_in(2) ? "a" : "b/c";
        if (history_.once_in(3)) list.limit = static_cast<std::size_t>(history_.up_to(3));
        EXPECT_EQ(must(store.list(list, Deadline::never())), must(model_->list(list, Deadline::never())));
        HistoryQuery events;
        if (history_.once_in(2)) events.name = RandomHistory::names().front();
        if (history_.once_in(2)) events.since = now - history_.pause();
        if (history_.once_in(2)) events.after_seq = static_cast<std::uint64_t>(history_.up_to(20));
        if (history_.once_in(2)) events.limit = static_cast<std::size_t>(history_.up_to(20));
        if (history_.once_in(2)) events.which = HistoryQuery::Which::oldest;
        EXPECT_EQ(must(store.history(events, Deadline::never())), must(model_->history(events, Deadline::never())));
    }

    RandomHistory history_;
    Bite& bite_;
    std::unique_ptr<StoreHarness> harness_;
    std::unique_ptr<Store> model_;
};

TEST_P(Differential, RandomHistoriesGiveTheAnswersOfTheMemoryStore) {
    const std::uint64_t seed = seed_of("differential/" + GetParam().name);
    const auto histories = static_cast<std::uint64_t>(scaled(GetParam().histories));
    Bite bite;
    for (std::uint64_t history = 0; history < histories; ++history) {
        SCOPED_TRACE(testing::Message() << GetParam().name << ": replay with HOLDFAST_SEED=" << seed + history);
        Race(GetParam(), seed + history, bite).run(100);
        if (HasFailure()) return;
    }
    RecordProperty("granted", bite.granted);
    RecordProperty("refused", bite.refused);
    EXPECT_GT(bite.granted, 0);
    EXPECT_GT(bite.refused, 0);
    EXPECT_GT(bite.stolen, 0);
    EXPECT_GT(bite.queued, 0);
    EXPECT_GT(bite.announced, 0);
    // Rare, because it needs a lease that has run out and a waiter that has not: a few histories may have none.
    if (histories >= 150) {
        EXPECT_GT(bite.handed_on, 0);
    }
}

/// Every store but the one that they are measured by.
std::vector<StoreCase> measured_cases() {
    auto cases = store_cases();
    std::erase_if(cases, [](const StoreCase& store_case) { return store_case.name == "memory"; });
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Stores, Differential, testing::ValuesIn(measured_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace holdfast::tests
