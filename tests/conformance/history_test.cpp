// The audit log: every change, in order, chained, and nothing else.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, EveryChangeIsOneEventAndRefusalsAreNone) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    EXPECT_FALSE(apply(by_bob(lock("x"))));
    granted(renewal(alice));
    elapse(1s);
    EXPECT_FALSE(apply(renewal(alice)));
    granted(renewal(alice, Revive::yes));
    elapse(1s);
    const Acquire bob = by_bob(lock("x"));
    granted(bob);
    const Credentials carol = Credentials::random();
    granted(Transfer{lock("x"), bob.as, {"carol", ""}, carol, "shift"});
    granted(Break{lock("x"), carol.lock_id, "root", "stuck"});

    using enum EventKind;
    EXPECT_EQ(kinds(lock("x")), (std::vector{acquired, renewed, revived, stolen, transferred, broken}));
    EXPECT_EQ(seqs(history(lock("x"))), (Seqs{1, 2, 3, 4, 5, 6}));
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, EveryEventHasWhereItsRequestCameFrom) {
    // A daemon says what it sees, whatever its client says.
    const auto seen = [](const char* address) { return GetParam().is_daemon ? "127.0.0.1" : address; };
    Acquire alice = by_alice(lock("x"), 1h);
    alice.sender = {"", "10.0.0.7"};
    granted(alice);
    Acquire bob = queued(by_bob(lock("x"), 1h));
    bob.sender = {"", "10.0.0.8"};
    EXPECT_FALSE(apply(bob));
    const Release given_back{.name = lock("x"), .as = alice.as, .sender = {"", "10.0.0.9"}};
    granted(given_back);
    granted(bob);
    granted(Transfer{.name = lock("x"),
                     .as = bob.as,
                     .to = {"carol", ""},
                     .to_as = Credentials::random(),
                     .sender = {"", "10.0.0.6"}});
    std::vector<std::string> addresses;
    for (const AuditEvent& event : history(lock("x")))
        if (event.kind != EventKind::renewed) addresses.push_back(event.details.at("address"));
    EXPECT_THAT(addresses,
                testing::ElementsAre(seen("10.0.0.7"), seen("10.0.0.9"), seen("10.0.0.8"), seen("10.0.0.6")));
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, TheHistoryOfALockCanBeReadFromAnyPoint) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    for (int i = 0; i < 4; ++i) {
        elapse(1s);
        granted(renewal(alice));
    }
    granted(by_bob(lock("y")));
    const auto read = [&](HistoryQuery query) {
        query.name = lock("x");
        return seqs(must(store().history(query, soon())));
    };
    EXPECT_EQ(read({}), (Seqs{1, 2, 3, 4, 5}));
    EXPECT_EQ(read({.after_seq = 3}), (Seqs{4, 5}));
    EXPECT_EQ(read({.after_seq = 5}), Seqs{});
    EXPECT_EQ(read({.limit = 2}), (Seqs{4, 5})) << "the newest, oldest of them first";
    EXPECT_EQ(read({.limit = 0}), Seqs{});
    EXPECT_EQ(read({.after_seq = 1, .limit = 100}), (Seqs{2, 3, 4, 5}));
    EXPECT_EQ(read({.since = now()}), (Seqs{5}));
    EXPECT_EQ(read({.since = now() - 1s}), (Seqs{4, 5}));
    EXPECT_EQ(read({.since = now() + 1ms}), Seqs{});
    EXPECT_EQ(read({.since = now() - 3s, .after_seq = 3, .limit = 1}), (Seqs{5}));
}

TEST_P(StoreConformance, TheHistoryOfAllLocksIsInTheOrderOfTime) {
    const Acquire b = by_alice(lock("b"), 1h);
    const Acquire a = by_alice(lock("a"), 1h);
    granted(b);
    elapse(1s);
    granted(a);
    elapse(1s);
    const Instant middle = now();
    granted(release(b));
    elapse(1s);
    granted(release(a));
    const auto read = [&](const HistoryQuery& query) {
        std::vector<std::string> found;
        for (const AuditEvent& event : must(store().history(query, soon())))
            found.push_back(event.name.text() + " " + std::string(name_of(event.kind)));
        return found;
    };
    using Lines = std::vector<std::string>;
    EXPECT_EQ(read({}), (Lines{"b acquired", "a acquired", "b released", "a released"}));
    EXPECT_EQ(read({.since = middle}), (Lines{"b released", "a released"}));
    EXPECT_EQ(read({.limit = 3}), (Lines{"a acquired", "b released", "a released"}));
    EXPECT_EQ(read({.since = middle, .limit = 1}), Lines{"a released"});
    EXPECT_EQ(read({.after_seq = 1}).size(), 4U) << "a number of one lock says nothing about all of them";
}

TEST_P(StoreConformance, AChainThatWasCutOrChangedDoesNotVerify) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    granted(renewal(alice));
    granted(release(alice));
    const LockStatus status = inspect(lock("x"));
    const std::vector<AuditEvent> whole = history(lock("x"));
    EXPECT_THAT(verify_chain(whole, status), Granted());

    std::vector<AuditEvent> cut(whole.begin(), whole.end() - 1);
    EXPECT_THAT(verify_chain(cut, status), RefusedWith(Errc::audit_chain_broken));
    std::vector<AuditEvent> changed = whole;
    changed[1].holder.text = "mallory";
    EXPECT_THAT(verify_chain(changed, status), RefusedWith(Errc::audit_chain_broken));
}

TEST_P(StoreConformance, AnAnswerCarriesTheSeqAndTheHashOfItsEvent) {
    const Outcome outcome = granted(by_alice(lock("x")));
    const AuditEvent event = history(lock("x")).back();
    EXPECT_EQ(outcome.lock.seq, event.seq);
    EXPECT_EQ(outcome.lock.chain, event.hash);
    EXPECT_EQ(event.prev_hash, Digest{});
    EXPECT_EQ(event.token, outcome.lock.token);
    EXPECT_EQ(event.at, now());
}

TEST_P(StoreConformance, ALongHistoryIsKeptWhole) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    std::vector<Request> renewals(100, renewal(alice));
    for (int batch = 0; batch < 20; ++batch) must(store().apply(renewals, soon()));
    EXPECT_EQ(history(lock("x")).size(), 2001U);
    expect_whole_chain(lock("x"));
}

}  // namespace holdfast::tests
