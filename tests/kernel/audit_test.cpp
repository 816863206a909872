// The audit log: one event for every change, chained so that no change of it goes unnoticed.

#include "kernel/codec.hpp"
#include "kernel/little_store.hpp"

#include <functional>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class AuditTest : public KernelTest {
protected:
    /// Seven events of five kinds.
    void SetUp() override {
        granted(alice_);
        elapse(1s);
        granted(renewal(alice_));
        granted(release(alice_));
        const Acquire bob = by_bob(name_, 1s);
        granted(bob);
        elapse(2s);
        const Acquire carol = by_carol(name_);
        granted(carol);
        granted(Break{name_, carol.as.lock_id, "root", "stuck"});
        granted(by_alice(name_));
    }

    [[nodiscard]] std::vector<AuditEvent> events() { return store_.shelf(name_).events; }

    void expect_broken(const std::vector<AuditEvent>& events, const LockStatus& status) {
        EXPECT_THAT(verify_chain(events, status), RefusedWith(Errc::audit_chain_broken));
    }

    const Acquire alice_ = by_alice(name_);
};

TEST_F(AuditTest, EventsAreNumberedWithoutGapsAndEachFollowsFromTheOneBefore) {
    const auto all = events();
    ASSERT_EQ(all.size(), 7U);
    Digest before{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].seq, i + 1);
        EXPECT_EQ(all[i].prev_hash, before);
        EXPECT_EQ(all[i].hash, kernel::hash_of(all[i]));
        before = all[i].hash;
    }
    EXPECT_EQ(record().seq, 7U);
    EXPECT_EQ(record().chain, before);
    EXPECT_EQ(record().changed_at, now());
}

TEST_F(AuditTest, AnEventTellsWhereItsRequestCameFromAndWhoSentItIfThatIsNobodyOfTheLease) {
    const LockName other = lock("other");
    Acquire alice = by_alice(other);
    alice.holder.user = "alice";
    alice.sender = {"alice", "10.0.0.7"};
    granted(alice);
    Renew renew = renewal(alice);
    renew.sender = {"bob", "10.0.0.8"};
    granted(renew);
    granted(renewal(alice));
    const auto& all = store_.shelf(other).events;
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].details.at("address"), "10.0.0.7");
    EXPECT_FALSE(all[0].details.contains("by"));
    EXPECT_EQ(all[1].details.at("address"), "10.0.0.8");
    EXPECT_EQ(all[1].details.at("by"), "bob");
    EXPECT_FALSE(all[2].details.contains("address")) << "of a program that works with the store itself";
    renew.sender.address = std::string(256, '1');
    EXPECT_THAT(apply(renew), RefusedWith(Errc::usage));
    renew.sender = {"a\nb", ""};
    EXPECT_THAT(apply(renew), RefusedWith(Errc::usage));
}

TEST_F(AuditTest, KindsTellTheStory) {
    std::vector<EventKind> kinds;
    for (const AuditEvent& event : events()) kinds.push_back(event.kind);
    using enum EventKind;
    EXPECT_EQ(kinds, (std::vector{acquired, renewed, released, acquired, stolen, broken, acquired}));
}

TEST_F(AuditTest, AGrantIsToldWithItsHolderTokenTimeAndPurpose) {
    granted(Break{name_, status().lease->lock_id, "root", ""});
    elapse(1s);
    Acquire request = by("web-3:ci:812:4711", name_, 30s);
    request.holder.user = "dana";
    request.operation = "migrate up";
    request.reason = "release 7";
    granted(request);
    const AuditEvent event = last_event();
    EXPECT_EQ(event.kind, EventKind::acquired);
    EXPECT_EQ(event.name, name_);
    EXPECT_EQ(event.at, now());
    EXPECT_EQ(event.token, status().token);
    EXPECT_EQ(event.lock_id, request.as.lock_id);
    EXPECT_EQ(event.holder, request.holder);
    EXPECT_EQ(event.actor, "");
    EXPECT_EQ(event.reason, "release 7");
    EXPECT_EQ(event.details, (std::map<std::string, std::string>{{"operation", "migrate up"}, {"ttl_ms", "30000"}}));
}

TEST_F(AuditTest, NoEventContainsAKeyOrItsHash) {
    for (const AuditEvent& event : events()) {
        const kernel::Bytes bytes = kernel::encode(event);
        const Digest hash = alice_.as.key.hash().digest;
        EXPECT_EQ(std::ranges::search(bytes, hash).size(), 0U);
    }
}

TEST_F(AuditTest, AnUntouchedLogVerifies) {
    EXPECT_THAT(verify_chain(events(), status()), Granted());
    EXPECT_THAT(verify_chain({}, store_.status(lock("never/used"))), Granted());
}

TEST_F(AuditTest, EveryChangedFieldOfEveryEventIsFound) {
    const std::vector<std::function<void(AuditEvent&)>> changes{
        [](AuditEvent& e) { e.name = lock("other"); },
        [](AuditEvent& e) { ++e.seq; },
        [](AuditEvent& e) { e.at += 1ms; },
        [](AuditEvent& e) { e.kind = EventKind::revived; },
        [](AuditEvent& e) { ++e.token.value; },
        [](AuditEvent& e) { e.lock_id = LockId::random(); },
        [](AuditEvent& e) { e.holder.text = "mallory"; },
        [](AuditEvent& e) { e.holder.user = "mallory"; },
        [](AuditEvent& e) { e.actor += "x"; },
        [](AuditEvent& e) { e.reason += "x"; },
        [](AuditEvent& e) { e.details["x"] = "y"; },
        [](AuditEvent& e) { e.prev_hash[31] ^= 1; },
        [](AuditEvent& e) { e.hash[0] ^= 1; },
        // Text that moves from one field to the next must not hash alike.
        [](AuditEvent& e) { std::swap(e.holder.text, e.holder.user); },
    };
    for (std::size_t i = 0; i < events().size(); ++i)
        for (const auto& change : changes) {
            auto altered = events();
            change(altered[i]);
            expect_broken(altered, status());
        }
}

TEST_F(AuditTest, AnEventThatWasHashedAgainIsFoundByTheNextOne) {
    for (std::size_t i = 0; i < events().size(); ++i) {
        auto altered = events();
        altered[i].holder.text = "mallory";
        altered[i].hash = kernel::hash_of(altered[i]);
        expect_broken(altered, status());
    }
}

TEST_F(AuditTest, ALogThatWasWrittenAnewIsFoundByTheRecord) {
    auto altered = events();
    altered[0].holder.text = "mallory";
    Digest before{};
    for (AuditEvent& event : altered) {
        event.prev_hash = before;
        event.hash = before = kernel::hash_of(event);
    }
    expect_broken(altered, status());
}

TEST_F(AuditTest, ARemovedEventIsFoundWhereverItWas) {
    for (std::size_t i = 0; i < events().size(); ++i) {
        auto altered = events();
        altered.erase(altered.begin() + static_cast<std::ptrdiff_t>(i));
        expect_broken(altered, status());
    }
    expect_broken({}, status());
}

TEST_F(AuditTest, AddedRepeatedAndReorderedEventsAreFound) {
    auto repeated = events();
    repeated.insert(repeated.begin() + 2, repeated[1]);
    expect_broken(repeated, status());

    auto reordered = events();
    std::swap(reordered[1], reordered[2]);
    expect_broken(reordered, status());

    auto added = events();
    AuditEvent more = added.back();
    ++more.seq;
    more.prev_hash = added.back().hash;
    more.hash = kernel::hash_of(more);
    added.push_back(more);
    expect_broken(added, status());
}

TEST_F(AuditTest, PrunedEventsAreGoneAndWhatIsLeftVerifies) {
    const auto held = record().held;
    elapse(1s);
    granted(Prune{name_, 4, "root", "retention"});
    ASSERT_EQ(events().size(), 4U);
    EXPECT_EQ(events().front().seq, 5U);
    EXPECT_EQ(status().pruned_seq, 4U);
    EXPECT_EQ(record().held, held);
    EXPECT_THAT(verify_chain(events(), status()), Granted());

    const AuditEvent told = last_event();
    EXPECT_EQ(told.kind, EventKind::pruned);
    EXPECT_EQ(told.actor, "root");
    EXPECT_EQ(told.reason, "retention");
    EXPECT_EQ(told.lock_id, held->lease.lock_id);
    EXPECT_EQ(told.holder, held->lease.holder);
    EXPECT_EQ(told.details, (std::map<std::string, std::string>{{"through", "4"}}));
}

TEST_F(AuditTest, PruningOfAFreeLockNamesTheLeaseThatEndedLast) {
    const LockId last = status().lease->lock_id;
    granted(Break{name_, last, "root", ""});
    granted(Prune{name_, 1, "root"});
    EXPECT_EQ(last_event().lock_id, last);
    EXPECT_EQ(last_event().holder, Holder{});
}

TEST_F(AuditTest, TheNewestEventIsNeverPruned) {
    granted(Prune{name_, 1000, "root"});
    EXPECT_EQ(status().pruned_seq, 6U);
    EXPECT_EQ(events().size(), 2U);
    EXPECT_THAT(verify_chain(events(), status()), Granted());
}

TEST_F(AuditTest, PruningWhatIsGoneOrWasNeverThereChangesNothing) {
    granted(Prune{name_, 4, "root"});
    const auto before = record();
    granted(Prune{name_, 4, "root"});
    granted(Prune{name_, 2, "root"});
    granted(Prune{name_, 0, "root"});
    EXPECT_EQ(record(), before);
    granted(Prune{lock("never/used"), 4, "root"});
    EXPECT_EQ(store_.status(lock("never/used")).seq, 0U);
}

TEST_F(AuditTest, OneRequestPrunesALimitedNumber) {
    granted(Break{name_, status().lease->lock_id, "root", ""});
    while (record().seq < Prune::most + 10) {
        const Acquire again = by_bob(name_);
        granted(again);
        granted(release(again));
    }
    granted(Prune{name_, Prune::most + 5, "root"});
    EXPECT_EQ(status().pruned_seq, Prune::most);
    granted(Prune{name_, Prune::most + 5, "root"});
    EXPECT_EQ(status().pruned_seq, Prune::most + 5);
    EXPECT_THAT(verify_chain(events(), status()), Granted());
}

TEST_F(AuditTest, AnEventThatWasRemovedBesideThePrunedOnesIsFound) {
    granted(Prune{name_, 3, "root"});
    for (std::size_t i = 0; i < events().size(); ++i) {
        auto altered = events();
        altered.erase(altered.begin() + static_cast<std::ptrdiff_t>(i));
        expect_broken(altered, status());
    }
}

TEST_F(AuditTest, TheActorOfAPruneMustBeNamed) {
    expect_untouched(Prune{name_, 4, ""}, Errc::usage);
    expect_untouched(Prune{name_, 4, "a\nb"}, Errc::usage);
}

TEST_F(AuditTest, ARecordThatWasSetBackIsFound) {
    LockStatus old = status();
    old.seq = 6;
    old.chain = events()[5].hash;
    expect_broken(events(), old);
}

}  // namespace
}  // namespace holdfast::tests
