// Removing old audit events, and reading page by page what there is to remove.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, PrunedEventsAreGoneAndTheLockIsAsItWas) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    for (int i = 0; i < 4; ++i) granted(renewal(alice));
    granted(by_bob(lock("xx"), 1h));
    const LockStatus before = inspect(lock("x"));
    elapse(1s);

    const Outcome pruned = granted(Prune{lock("x"), 3, "root", "retention"});
    EXPECT_EQ(pruned.lock, inspect(lock("x")));
    EXPECT_EQ(pruned.lock.lease, before.lease);
    EXPECT_EQ(pruned.lock.pruned_seq, 3U);
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{4, 5, 6}));
    EXPECT_EQ(history(lock("x")).back().kind, EventKind::pruned);
    EXPECT_EQ(seqs(history(lock("xx"))), Seqs{1}) << "of another lock";
    expect_whole_chain(lock("x"));

    const auto all = must(store().history({}, soon()));
    EXPECT_EQ(all.size(), 4U) << "nor are they in the log of all locks";
    granted(renewal(alice));
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{4, 5, 6, 7}));
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, PruningGoesOnWhereItEnded) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    for (int i = 0; i < 9; ++i) granted(renewal(alice));
    granted(Prune{lock("x"), 2, "root"});
    granted(Prune{lock("x"), 7, "root"});
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{8, 9, 10, 11, 12}));
    granted(Prune{lock("x"), 7, "root"});
    EXPECT_EQ(inspect(lock("x")).seq, 12U) << "a repeated one changes nothing";
    granted(release(alice));
    granted(Prune{lock("x"), 1000, "root"});
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{13, 14})) << "the newest one stays";
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ABatchCanPruneWhatItHasJustWritten) {
    const Acquire alice = by_alice(lock("x"), 1h);
    const Acquire bob = by_bob(lock("y"), 1h);
    granted(bob);
    const std::vector<Request> requests{alice,
                                        renewal(alice),
                                        Prune{lock("x"), 1, "root"},
                                        renewal(bob),
                                        Prune{lock("y"), 1, "root"},
                                        renewal(alice),
                                        Prune{lock("x"), 3, "root"}};
    for (const Reply& reply : must(store().apply(requests, soon()))) EXPECT_THAT(reply, Granted());
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{4, 5}));
    EXPECT_EQ(seqs(history(lock("y"))), (Seqs{2, 3}));
    expect_whole_chain(lock("x"));
    expect_whole_chain(lock("y"));
}

TEST_P(StoreConformance, ALockCanBePrunedTwiceInABatch) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    for (int i = 0; i < 9; ++i) granted(renewal(alice));
    const std::vector<Request> requests{Prune{lock("x"), 3, "root"}, Prune{lock("x"), 7, "root"}};
    for (const Reply& reply : must(store().apply(requests, soon()))) EXPECT_THAT(reply, Granted());
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{8, 9, 10, 11, 12}));
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ManyEventsArePrunedAtOnce) {
    const Acquire alice = by_alice(lock("x"), 1h);
    std::vector<Request> requests{alice};
    for (int i = 0; i < 299; ++i) requests.emplace_back(renewal(alice));
    for (const Reply& reply : must(store().apply(requests, soon()))) EXPECT_THAT(reply, Granted());
    granted(Prune{lock("x"), 298, "root"});
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{299, 300, 301}));
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, PruningDoesNotDisturbAWaiter) {
    const Acquire alice = by_alice(lock("x"), 1h);
    const Acquire bob = queued(by_bob(lock("x")));
    granted(alice);
    granted(renewal(alice));
    EXPECT_FALSE(apply(bob));
    granted(Prune{lock("x"), 1, "root"});
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
    granted(release(alice));
    EXPECT_THAT(apply(by_carol(lock("x"))), RefusedWith(Errc::lock_conflict));
    granted(bob);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, TheOldestEventsCanBeReadAlone) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    for (int i = 0; i < 5; ++i) {
        elapse(1s);
        granted(renewal(alice));
    }
    granted(by_bob(lock("y"), 1h));
    const auto oldest = [&](HistoryQuery query) {
        query.which = HistoryQuery::Which::oldest;
        return must(store().history(query, soon()));
    };
    EXPECT_EQ(seqs(oldest({.name = lock("x"), .limit = 2})), (Seqs{1, 2}));
    EXPECT_EQ(seqs(oldest({.name = lock("x"), .after_seq = 2, .limit = 2})), (Seqs{3, 4}));
    EXPECT_EQ(seqs(oldest({.name = lock("x"), .after_seq = 5, .limit = 2})), Seqs{6});
    EXPECT_EQ(seqs(oldest({.name = lock("x"), .since = now() - 2s, .limit = 2})), (Seqs{4, 5}));
    EXPECT_EQ(seqs(oldest({.name = lock("x")})), (Seqs{1, 2, 3, 4, 5, 6})) << "without a limit all";
    EXPECT_EQ(seqs(oldest({.limit = 3})), (Seqs{1, 2, 3})) << "of all locks";
    granted(Prune{lock("x"), 2, "root"});
    EXPECT_EQ(seqs(oldest({.name = lock("x"), .limit = 2})), (Seqs{3, 4}));
}

TEST_P(StoreConformance, AListCanBeReadPageByPage) {
    std::vector<std::string> expected;
    for (const char* name : {"A", "a", "a%", "a/b", "b", "é"}) {
        expected.emplace_back(name);
        granted(by_alice(lock(name), 1h));
    }
    const Acquire gone = by_alice(lock("a/a"));
    granted(gone);
    granted(release(gone));
    const auto pages = [&](ListQuery query, std::size_t size) {
        query.limit = size;
        std::vector<std::string> names;
        while (true) {
            const auto page = must(store().list(query, soon()));
            EXPECT_LE(page.size(), size);
            if (page.empty() || names.size() > 100) return names;
            for (const LockStatus& status : page) names.push_back(status.name.text());
            query.after = names.back();
        }
    };
    for (const std::size_t size : {1U, 2U, 4U, 100U}) EXPECT_EQ(pages({}, size), expected) << size;
    using Names = std::vector<std::string>;
    EXPECT_EQ(pages({.with_free = true}, 3), (Names{"A", "a", "a%", "a/a", "a/b", "b", "é"}));
    EXPECT_EQ(pages({.prefix = "a"}, 1), (Names{"a", "a%", "a/b"}));
    EXPECT_EQ(pages({.prefix = "a", .after = "Z"}, 2), (Names{"a", "a%", "a/b"})) << "begins before the prefix";
    EXPECT_EQ(pages({.prefix = "a", .after = "b"}, 2), Names{}) << "begins behind it";
    EXPECT_EQ(pages({.after = "a%"}, 2), (Names{"a/b", "b", "é"}));
}

}  // namespace holdfast::tests
