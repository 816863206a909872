// Goal: no grant is given twice and none that was acknowledged is lost, whatever breaks. Method: a server of the
// test's own is killed while threads work; a proxy loses requests and replies at a message that the test chooses; a
// standby that never answers leaves commits half done.
#include "stores/postgres_fixture.hpp"
#include "support/servers/proxy.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline within(std::chrono::milliseconds time) { return Deadline::in(host_clock(), time); }

/// The three endings that a fault may have. Everything else is a bug.
bool is_fault(const Error& error) {
    expect_no_secret(error);
    return error.code == Errc::store_unavailable || error.code == Errc::outcome_unknown;
}

class PostgresFaults : public PostgresFixture {};

/// Which grants were acknowledged, of all clients.
class Grants {
public:
    void add(const LockName& name, const Lease& lease) {
        const std::scoped_lock guard(mutex_);
        const auto [at, is_new] = by_token_.try_emplace({name, lease.token.value}, lease.lock_id);
        EXPECT_TRUE(is_new || at->second == lease.lock_id) << "a token was given twice";
    }
    [[nodiscard]] std::size_t count() {
        const std::scoped_lock guard(mutex_);
        return by_token_.size();
    }
    /// Each of them must be in the lock's history.
    void expect_in(Store& store, const LockName& name) {
        std::map<std::uint64_t, LockId> kept;
        for (const AuditEvent& event : must(store.history({.name = name}, within(20s))))
            if (event.kind == EventKind::acquired || event.kind == EventKind::stolen)
                kept.emplace(event.token.value, event.lock_id);
        const std::scoped_lock guard(mutex_);
        for (const auto& [grant, lock_id] : by_token_) {
            if (grant.first != name) continue;
            const auto found = kept.find(grant.second);
            EXPECT_TRUE(found != kept.end() && found->second == lock_id) << "an acknowledged grant is gone";
        }
    }

private:
    std::mutex mutex_;
    std::map<std::pair<LockName, std::uint64_t>, LockId> by_token_;
};

/// The sessions of a server that was killed end a moment after it, and until then it does not start again.
void bring_back(Server& server) {
    for (int tries = 0;; ++tries) {
        try {
            server.start();
            return;
        } catch (const std::runtime_error&) {
            if (tries == 100) throw;
            std::this_thread::sleep_for(20ms);
        }
    }
}

TEST(PostgresCrash, AServerThatIsKilledUnderLoadLosesNothingAndComesBack) {
    const auto server = start_postgres_server();
    const std::string url = postgres_url(server->port());
    must(must(open_store(url))->apply({}, within(20s)));
    const std::vector<LockName> names{lock("a"), lock("b"), lock("c")};
    // Opening needs a server that is there; everything after it does not.
    std::vector<std::unique_ptr<Store>> stores;
    for (int i = 0; i < 4; ++i) stores.push_back(must(open_store(url)));
    Grants grants;
    std::atomic<bool> done = false;
    std::atomic<int> faults = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&, i] {
                Store* const store = stores[static_cast<std::size_t>(i)].get();
                std::minstd_rand random(static_cast<unsigned>(i + 1));
                while (!done) {
                    const LockName& name = names[random() % names.size()];
                    const Acquire mine = by("t" + std::to_string(i), name, 100ms);
                    Reply reply = store->apply_one(mine, within(2s));
                    while (!reply && reply.error().code != Errc::lock_conflict && !done) {
                        ASSERT_TRUE(is_fault(reply.error())) << reply.error().message;
                        ++faults;
                        // The same request again: what was granted and not heard of is found, not granted twice.
                        reply = store->apply_one(mine, within(2s));
                    }
                    if (!reply) continue;
                    grants.add(name, *reply->lock.lease);
                    const Reply released = store->apply_one(release(mine), within(2s));
                    ASSERT_TRUE(released || released.error().code == Errc::lock_not_held || is_fault(released.error()))
                        << released.error().message;
                }
            });
        // Also when a server does not come back: the threads end before anything else does.
        const std::shared_ptr<void> ending(nullptr, [&](void*) { done = true; });
        for (int round = 0; round < scaled(20); ++round) {
            const std::size_t before = grants.count();
            while (grants.count() < before + 5) std::this_thread::sleep_for(1ms);
            server->kill();
            bring_back(*server);
        }
    }
    const auto store = must(open_store(url));
    for (const LockName& name : names) {
        sound_lock(*store, name, within(20s));
        grants.expect_in(*store, name);
    }
    fmt::print("{} grants acknowledged, {} calls failed\n", grants.count(), faults.load());
    EXPECT_GT(faults, 0) << "nobody noticed that the server was killed";
}

// One client, one lock; every message that it sends can be the one that is lost.
TEST_F(PostgresFaults, AReplyThatIsLostAfterItsCommitNeverLeadsToASecondGrant) {
    Proxy proxy(port_);
    std::mt19937_64 random(seed_of("postgres lost replies"));
    const auto direct = open();
    must(direct->apply({}, soon()));
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    std::map<Errc, int> endings;
    int happened = 0;
    const int rounds = scaled(500);
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        const LockName name = lock("l" + std::to_string(round % 7));
        const Acquire mine = by_alice(name, 1h);
        const std::uint64_t seq = must(direct->inspect(name, soon())).seq;
        proxy.arrange(1 + random() % 3, random() % 2 == 0 ? Fate::lose_reply : Fate::lose_request);
        const Reply reply = store->apply_one(mine, soon());
        happened += proxy.has_happened() ? 1 : 0;
        proxy.arrange(0, Fate::lose_reply);
        if (!reply) {
            ASSERT_TRUE(is_fault(reply.error())) << reply.error().message;
            ++endings[reply.error().code];
        }
        const LockStatus after = must(direct->inspect(name, soon()));
        ASSERT_LE(after.seq, seq + 1);
        if (reply || after.seq > seq) {
            ASSERT_TRUE(after.lease);
            EXPECT_EQ(after.lease->lock_id, mine.as.lock_id);
        }
        const bool unchanged = !reply && reply.error().code == Errc::store_unavailable;
        EXPECT_TRUE(!unchanged || after.seq == seq) << "something was changed";
        // Whatever came of it, asking again gives the one grant.
        const Outcome again = must(store->apply_one(mine, soon()));
        EXPECT_TRUE(!after.lease || again.lock.token == after.token);
        EXPECT_THAT(store->apply_one(release(mine), soon()), Granted());
    }
    for (int i = 0; i < 7; ++i) sound_lock(*direct, lock("l" + std::to_string(i)), soon());
    fmt::print("{} rounds, {} with a loss: {} unknown, {} unavailable\n", rounds, happened,
               endings[Errc::outcome_unknown], endings[Errc::store_unavailable]);
    EXPECT_GT(endings[Errc::outcome_unknown], 0);
}

TEST_F(PostgresFaults, AServerThatFallsSilentEndsTheCallAtItsDeadline) {
    Proxy proxy(port_);
    must(open()->apply({}, soon()));
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    const Acquire mine = by_alice(lock("x"));
    proxy.arrange(1, Fate::no_reply);
    EXPECT_THAT(store->apply_one(mine, within(300ms)), RefusedWith(Errc::store_unavailable));
    // A connection that is there: the second message is then the one that commits.
    EXPECT_THAT(store->inspect(lock("x"), soon()), Granted());
    proxy.arrange(2, Fate::no_reply);
    EXPECT_THAT(store->apply_one(mine, within(300ms)), RefusedWith(Errc::outcome_unknown));
    EXPECT_THAT(store->apply_one(mine, soon()), Granted());
}

TEST_F(PostgresFaults, AConnectionThatBrokeWhileIdleIsReplacedUnnoticed) {
    Proxy proxy(port_);
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    must(store->apply({}, soon()));
    for (int round = 0; round < 20; ++round) {
        proxy.cut();
        EXPECT_THAT(store->apply_one(by_alice(lock("x" + std::to_string(round))), soon()), Granted());
        proxy.cut();
        EXPECT_THAT(store->inspect(lock("x"), soon()), Granted());
    }
}

// A client that is stopped between its two round trips must not block the lock for as long as it is stopped.
TEST_F(PostgresFaults, AClientThatStopsInTheMiddleBlocksNobodyForLong) {
    Proxy proxy(port_);
    const auto direct = open();
    must(direct->apply_one(by_bob(lock("other")), soon()));
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    // The request arrives and locks the row; the answer does not, so COMMIT is never sent.
    proxy.arrange(1, Fate::no_reply);
    std::jthread stuck([&] { EXPECT_FALSE(store->apply_one(by_alice(lock("x")), within(25s))); });
    while (by_hand_("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%" +
                    schema_ + "%'") == "0")
        std::this_thread::yield();
    EXPECT_THAT(direct->apply_one(by_bob(lock("x")), within(12s)), Granted()) << "long before the other gives up";
    proxy.cut();
}

TEST(PostgresStandby, ACommitThatNoStandbyConfirmedIsUnknown) {
    const auto server = start_postgres_server({.arguments = {"-c", "synchronous_standby_names=nobody"}});
    const std::string url = postgres_url(server->port());
    ByHand by_hand{server->port()};
    by_hand("SET synchronous_commit = local");
    by_hand(std::string(must(schema_of(url))));
    const auto store = must(open_store(url));
    const Acquire mine = by_alice(lock("x"));
    Reply reply = fail(Errc::usage, "never asked");
    std::jthread committing([&] { reply = store->apply_one(mine, within(60s)); });
    // An operator loses patience; the server then says that it committed, with a warning.
    while (by_hand("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != "t")
        std::this_thread::yield();
    committing.join();
    EXPECT_THAT(reply, RefusedWith(Errc::outcome_unknown));
    const LockStatus status = must(store->inspect(lock("x"), within(20s)));
    ASSERT_TRUE(status.lease) << "it is committed all the same";
    EXPECT_EQ(status.lease->lock_id, mine.as.lock_id);
}

TEST(PostgresGrade, IsWhatTheServerPromises) {
    const auto lossy = start_postgres_server({.arguments = {"-c", "fsync=off"}});
    EXPECT_THAT(open_store(postgres_url(lossy->port())), RefusedWith(Errc::store_unsafe));
    EXPECT_EQ(must(open_store(postgres_url(lossy->port(), "allow_lossy=on")))->info().grade, Grade::c);
    const auto torn = start_postgres_server({.arguments = {"-c", "full_page_writes=off"}});
    EXPECT_EQ(must(open_store(postgres_url(torn->port())))->info().grade, Grade::b);
}

}  // namespace
}  // namespace holdfast::tests
