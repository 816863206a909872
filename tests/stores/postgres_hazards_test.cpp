// Goal: neither what a role or a database is set to, nor a server that is not the one it should be, reaches the locks.
// Method: roles with other settings, whose effect a trigger sees; servers in recovery, with followers and with
// certificates.
#include "stores/postgres_fixture.hpp"
#include "support/servers/certificate.hpp"

#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// As a parameter of the URL: what a role would have as its default.
std::string with(const std::string& setting, const std::string& value) {
    return "options=-c%20" + setting + "%3D" + value;
}

class PostgresHazards : public PostgresFixture {
protected:
    PostgresHazards() { must(open()->apply({}, soon())); }

    /// A trigger of ours writes down what `expression` is while a lock is changed.
    void observe(const std::string& expression) {
        by_hand_("CREATE TABLE " + schema_ + ".seen (value text)");
        by_hand_("CREATE FUNCTION " + schema_ + ".see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO " +
                 schema_ + ".seen VALUES (" + expression + "); RETURN NEW; END $$");
        by_hand_("CREATE TRIGGER see BEFORE INSERT ON " + schema_ + ".audit FOR EACH ROW EXECUTE FUNCTION " + schema_ +
                 ".see()");
    }
    /// What it was when a store with these parameters changed a lock.
    [[nodiscard]] std::string observed_with(const std::string& parameters) {
        by_hand_("DELETE FROM " + schema_ + ".seen");
        must(open(parameters)->apply_one(by_alice(lock(parameters)), soon()));
        return by_hand_("SELECT value FROM " + schema_ + ".seen");
    }
    /// How many sessions of the server wait for a row of this store.
    [[nodiscard]] std::string waiting() {
        return observer_("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" +
                         schema_ + "%'");
    }

    ByHand observer_{port_};
};

// Also what the schema says of rights: no others are needed.
TEST_F(PostgresHazards, ARoleThatMayNotDeleteEventsPrunesNothingAndCanDoAllTheRest) {
    const std::string user = schema_ + "_user";
    by_hand_("CREATE ROLE " + user);
    by_hand_("GRANT USAGE ON SCHEMA " + schema_ + " TO " + user);
    by_hand_("GRANT SELECT ON ALL TABLES IN SCHEMA " + schema_ + " TO " + user);
    by_hand_("GRANT INSERT, UPDATE ON " + schema_ + ".locks TO " + user);
    by_hand_("GRANT INSERT ON " + schema_ + ".audit TO " + user);
    by_hand_("GRANT ALL ON " + schema_ + ".queue TO " + user);
    const auto store = open(with("role", user));
    const Acquire alice = by_alice(lock("x"), 1h);
    const auto unmarked = store->apply_one(alice, soon());
    EXPECT_THAT(unmarked, RefusedWith(Errc::denied));
    EXPECT_THAT(unmarked.error().message, testing::HasSubstr("UPDATE (used)"));
    by_hand_("GRANT UPDATE (used) ON " + schema_ + ".meta TO " + user);
    must(store->apply_one(alice, soon()));
    must(store->apply_one(renewal(alice), soon()));
    EXPECT_FALSE(store->apply_one(queued(by_bob(lock("x"))), soon()));
    const LockStatus before = sound_lock(*store, lock("x"), soon());

    const Prune prune{lock("x"), 1, "root"};
    const auto refused = store->apply_one(prune, soon());
    EXPECT_THAT(refused, RefusedWith(Errc::denied));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("the right to DELETE"));
    const LockStatus after = sound_lock(*store, lock("x"), soon());
    EXPECT_EQ(after.seq, before.seq);
    EXPECT_EQ(after.pruned_seq, 0U);
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());

    by_hand_("GRANT DELETE ON " + schema_ + ".audit TO " + user);
    EXPECT_THAT(store->apply_one(prune, soon()), Granted());
    EXPECT_EQ(sound_lock(*store, lock("x"), soon()).pruned_seq, 1U);
    by_hand_("DROP OWNED BY " + user);
    by_hand_("DROP ROLE " + user);
}

// At another isolation level a transaction that waited for a row gets an error instead of its turn, or decides by what
// it saw before.
TEST_F(PostgresHazards, TheIsolationIsOursAndNotTheRoles) {
    observe("current_setting('transaction_isolation')");
    for (const char* level : {"serializable", "repeatable%5C%20read", "read%5C%20uncommitted"})
        EXPECT_EQ(observed_with(with("default_transaction_isolation", level)), "read committed") << level;
}

// Without a limit a server keeps the rows of a client that is gone, for hours; with a short one it ends a session
// between two messages of a slow client.
TEST_F(PostgresHazards, TheTimeoutsOfATransactionAreOursAndNotTheRoles) {
    for (const std::string name : {"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"}) {
        SCOPED_TRACE(name);
        observe("(SELECT setting FROM pg_settings WHERE name = '" + name + "')");
        for (const char* value : {"0", "86400000"}) {
            const int in_force = std::stoi(observed_with(with(name, value)));
            EXPECT_GT(in_force, 0);
            EXPECT_LE(in_force, 20'000) << "no longer than the call may take";
        }
        by_hand_("DROP TABLE " + schema_ + ".seen");
        by_hand_("DROP FUNCTION " + schema_ + ".see CASCADE");
    }
}

// A server does not look at the connection of a session that waits. Whose call is over would get the row some day.
TEST_F(PostgresHazards, ACallerThatGaveUpWaitsInTheServerNoLonger) {
    const auto store = open();
    const Acquire alice = by_alice(lock("x"));
    must(store->apply_one(alice, soon()));
    by_hand_("BEGIN");
    by_hand_("SELECT 1 FROM " + row_of_lock(lock("x")) + " FOR SHARE");
    EXPECT_THAT(store->apply_one(renewal(alice), Deadline::in(host_clock(), 300ms)),
                RefusedWith(Errc::store_unavailable));
    for (const Deadline end = soon(); waiting() != "0" && !end.passed(host_clock());) std::this_thread::yield();
    EXPECT_EQ(waiting(), "0");
    by_hand_("COMMIT");
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted());
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).seq, 2U) << "the one who gave up has changed nothing";
}

// The server rolls one of two transactions back that wait for each other. It can be repeated, so the caller need not be
// told.
TEST_F(PostgresHazards, ADeadlockIsRepeated) {
    for (const char* name : {"a", "b"}) {
        const Acquire before = by_alice(lock(name));
        must(open()->apply_one(before, soon()));
        must(open()->apply_one(release(before), soon()));
    }
    // The shell waits without ever looking for a deadlock, so the store's session is the one that finds it and is
    // ended. It looks once, when the shell has long been waiting.
    by_hand_("SET deadlock_timeout = '1h'");
    const auto store = open(with("deadlock_timeout", "4s"));
    by_hand_("BEGIN");
    by_hand_("SELECT 1 FROM " + row_of_lock(lock("b")) + " FOR UPDATE");
    auto both = std::async(std::launch::async, [&] {
        return must(store->apply(std::vector<Request>{by_bob(lock("a")), by_bob(lock("b"))}, soon()));
    });
    while (waiting() == "0" && both.wait_for(0s) != std::future_status::ready) std::this_thread::yield();
    by_hand_("SELECT 1 FROM " + row_of_lock(lock("a")) + " FOR UPDATE");
    by_hand_("COMMIT");
    EXPECT_THAT(both.get(), testing::Each(Granted()));
}

/// Lets it begin again as a standby does: it replays, and takes no writes.
void start_in_recovery(Server& server) {
    server.kill();
    static_cast<void>(server.folder().write("data/standby.signal", ""));
    server.start();
}

/// With libpq's own check of what a server is, and without.
const std::vector<std::string> ways{"", "target_session_attrs=any"};

TEST(PostgresRecovery, AStandbyIsReadAndNeverWritten) {
    const auto server = start_postgres_server();
    const Deadline soon = Deadline::in(host_clock(), 1min);
    std::vector<std::unique_ptr<Store>> stores;
    for (const std::string& way : ways) stores.push_back(must(open_store(postgres_url(server->port(), way))));
    const Acquire alice = by_alice(lock("x"), 1h);
    const FencingToken token = must(stores[0]->apply_one(alice, soon)).lock.token;
    must(stores[1]->inspect(lock("x"), soon));

    start_in_recovery(*server);
    ASSERT_EQ(ByHand(server->port())("SELECT pg_is_in_recovery()"), "t");
    for (std::size_t i = 0; i < ways.size(); ++i) {
        SCOPED_TRACE(ways[i]);
        const auto fresh = must(open_store(postgres_url(server->port(), ways[i])));
        for (Store* store : {fresh.get(), stores[i].get()}) {
            EXPECT_EQ(must(store->inspect(lock("x"), soon)).token, token);
            EXPECT_EQ(must(store->list({}, soon)).size(), 1U);
            EXPECT_EQ(must(store->history({}, soon)).size(), 1U);
            EXPECT_TRUE(store->info().may_be_stale);
        }
        EXPECT_THAT(fresh->apply_one(by_bob(lock("y")), soon), RefusedWith(Errc::store_unavailable));
        EXPECT_THAT(stores[i]->apply_one(renewal(alice), soon), RefusedWith(Errc::store_unavailable));
        EXPECT_THAT(stores[i]->apply_one(check(lock("x"), token), soon), RefusedWith(Errc::store_unavailable));
    }

    ASSERT_EQ(ByHand(server->port())("SELECT pg_promote()"), "t");
    for (const auto& store : stores) {
        EXPECT_THAT(store->apply_one(renewal(alice), soon), Granted());
        must(store->inspect(lock("x"), soon));
        EXPECT_FALSE(store->info().may_be_stale);
    }
}

TEST(PostgresRecovery, OfSeveralServersTheOneThatTakesWritesIsUsed) {
    const auto standby = start_postgres_server();
    start_in_recovery(*standby);
    const std::uint16_t primary = shared_server_port("postgres");
    const std::string schema = random_schema();
    const auto store =
        must(open_store(fmt::format("postgres://{}:{}@127.0.0.1:{},127.0.0.1:{}/postgres?schema={}", server_user_name,
                                    server_password, standby->port(), primary, schema)));
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), Deadline::in(host_clock(), 1min)), Granted());
    ByHand{primary}("DROP SCHEMA " + schema + " CASCADE");
}

TEST(PostgresRecovery, AFollowerThatNobodyWaitsForLowersTheGrade) {
    const auto server = start_postgres_server();
    EXPECT_EQ(must(open_store(postgres_url(server->port())))->info().grade, Grade::a);
    const std::unique_ptr<PGconn, decltype(&PQfinish)> follower(
        PQconnectdb(postgres_url(server->port(), "replication=true").replace(0, 8, "postgresql").c_str()), PQfinish);
    ASSERT_EQ(PQstatus(follower.get()), CONNECTION_OK) << PQerrorMessage(follower.get());
    const auto store = must(open_store(postgres_url(server->port())));
    EXPECT_EQ(store->info().grade, Grade::b);
    EXPECT_THAT(store->info().reasons, testing::Contains(testing::HasSubstr("a failover can lose")));
}

// An attacker on the way to a remote host must not get the password, let alone grant locks.
TEST(PostgresTls, AHostElsewhereMustHaveACertificateOfItsOwnFromATrustedAuthority) {
    const ServerFolder folder;
    const Certificate right = make_certificate(folder, "right", "DNS:db.example.invalid");
    const Certificate wrong = make_certificate(folder, "wrong", "DNS:db.example.invalid");
    const auto server = start_postgres_server(
        {.arguments = {"-c", "ssl=on", "-c", "ssl_cert_file=" + right.file, "-c", "ssl_key_file=" + right.key}});
    const auto open = [&](std::string_view host, const std::string& trusted) {
        return open_store(fmt::format("postgres://{}:{}@{}/postgres?hostaddr=127.0.0.1&port={}&sslrootcert={}",
                                      server_user_name, server_password, host, server->port(), trusted));
    };
    const auto store = must(open("db.example.invalid", right.file));
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), Deadline::in(host_clock(), 20s)), Granted());
    EXPECT_EQ(ByHand(server->port())("SELECT bool_and(ssl) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE "
                                     "application_name = 'holdfast'"),
              "t");
    EXPECT_THAT(open("db.example.invalid", wrong.file), RefusedWith(Errc::store_unavailable)) << "another's word";
    EXPECT_THAT(open("db.example.invalid", "/nowhere"), RefusedWith(Errc::store_unavailable)) << "nobody's word";
    EXPECT_THAT(open("other.example.invalid", right.file), RefusedWith(Errc::store_unavailable)) << "another host";
}

}  // namespace
}  // namespace holdfast::tests
