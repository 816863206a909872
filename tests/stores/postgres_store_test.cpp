// Goal: what only PostgreSQL can get wrong. Method: a real server, with statements by hand beside the store's own.
#include "stores/postgres_fixture.hpp"

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresStore : public PostgresFixture {};

// The expression clock_timestamp() in a statement that has to wait for a row is computed before the wait.
TEST_F(PostgresStore, ALeaseLastsItsWholeTtlAfterAWaitForTheRow) {
    const auto store = open();
    const Acquire first = by_alice(lock("x"), 50ms);
    must(store->apply_one(first, soon()));
    must(store->apply_one(release(first), soon()));

    by_hand_("BEGIN");
    by_hand_("SELECT 1 FROM " + row_of_lock(lock("x")) + " FOR UPDATE");
    Reply reply = fail(Errc::usage, "never asked");
    std::jthread waiting([&] { reply = store->apply_one(by_bob(lock("x"), 2s), soon()); });
    ByHand other{port_};
    while (other("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" + schema_ +
                 "%'") == "0")
        std::this_thread::yield();
    other("SELECT pg_sleep(1.2)");
    const auto let_go = std::stoll(other("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"));
    by_hand_("COMMIT");
    waiting.join();

    const Outcome outcome = must(std::move(reply));
    EXPECT_GE(outcome.lock.lease->expires_at.time_since_epoch().count(), let_go + 2000);
    EXPECT_GE(outcome.lock.lease->acquired_at.time_since_epoch().count(), let_go);
}

// At SERIALIZABLE, a transaction that waited for a row gets an error instead of its turn.
TEST_F(PostgresStore, ADatabaseWhoseDefaultIsSerializableMakesNoDifference) {
    const auto store = open("options=-c%20default_transaction_isolation%3Dserializable");
    const auto other = open("options=-c%20default_transaction_isolation%3Dserializable");
    must(store->apply_one(by_alice(lock("x"), 50ms), soon()));
    std::atomic<int> granted = 0;
    {
        std::vector<std::jthread> threads;
        for (Store* each : {store.get(), other.get(), store.get(), other.get()})
            threads.emplace_back([&, each] {
                for (int i = 0; i < scaled(50); ++i) {
                    const Acquire mine = by_bob(lock("x"), 30s);
                    const Reply reply = each->apply_one(mine, soon());
                    if (!reply) {
                        EXPECT_THAT(reply, RefusedWith(Errc::lock_conflict));
                        continue;
                    }
                    ++granted;
                    EXPECT_THAT(each->apply_one(release(mine), soon()), Granted());
                }
            });
    }
    EXPECT_GT(granted, 0);
    sound_lock(*store, lock("x"), soon());
}

// With synchronous_commit = off a crash took back 8 of 8 acknowledged grants. A trigger of ours sees what is in force.
TEST_F(PostgresStore, ARoleThatCommitsAsynchronouslyStillGetsDurableGrants) {
    must(open()->apply({}, soon()));
    by_hand_("CREATE TABLE " + schema_ + ".seen (setting text, isolation text)");
    by_hand_("CREATE FUNCTION " + schema_ + ".see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO " +
             schema_ +
             ".seen VALUES (current_setting('synchronous_commit'), current_setting('transaction_isolation')); "
             "RETURN NEW; END $$");
    by_hand_("CREATE TRIGGER see BEFORE INSERT ON " + schema_ + ".audit FOR EACH ROW EXECUTE FUNCTION " + schema_ +
             ".see()");
    const auto settings_seen_with = [&](const std::string& level) {
        by_hand_("DELETE FROM " + schema_ + ".seen");
        must(open("options=-c%20synchronous_commit%3D" + level)->apply_one(by_alice(lock(level)), soon()));
        return by_hand_("SELECT setting || ' ' || isolation FROM " + schema_ + ".seen");
    };
    for (const char* weak : {"off", "local", "remote_write", "on"})
        EXPECT_EQ(settings_seen_with(weak), "on read committed") << weak;
    EXPECT_EQ(settings_seen_with("remote_apply"), "remote_apply read committed") << "the user wants more";
}

TEST_F(PostgresStore, NoNameAndNoTextReachesAStatement) {
    const auto store = open();
    by_hand_("CREATE SCHEMA IF NOT EXISTS " + schema_);
    by_hand_("CREATE TABLE " + schema_ + ".x ()");
    const std::string evil = "a'; DROP TABLE " + schema_ + ".x;--";
    for (const std::string& name : {evil, std::string("\\x41"), std::string("\"; SELECT 1;"), std::string("$1"),
                                    std::string("{a,b}"), std::string("NULL")}) {
        Acquire request = by(name, lock(name), 30s);
        request.operation = request.reason = name;
        request.meta = {{name, name}};
        EXPECT_EQ(must(store->apply_one(request, soon())).lock.lease->holder.text, name);
        EXPECT_EQ(must(store->inspect(lock(name), soon())).lease->reason, name);
        EXPECT_EQ(must(store->history({.name = lock(name)}, soon())).size(), 1U);
        EXPECT_EQ(must(store->list({.prefix = name}, soon())).size(), 1U);
        EXPECT_EQ(by_hand_("SELECT convert_from(name, 'UTF8') FROM " + row_of_lock(lock(name))), name);
    }
    EXPECT_EQ(by_hand_("SELECT to_regclass('" + schema_ + ".x') IS NOT NULL"), "t");
}

TEST_F(PostgresStore, TokensCannotFallAndRecordsCannotGoByHand) {
    must(open()->apply_one(by_alice(lock("x")), soon()));
    EXPECT_THROW(by_hand_("UPDATE " + schema_ + ".locks SET token = token - 1"), std::runtime_error);
    EXPECT_THROW(by_hand_("UPDATE " + schema_ + ".locks SET name = 'y'"), std::runtime_error);
    EXPECT_THROW(by_hand_("DELETE FROM " + schema_ + ".locks"), std::runtime_error);
}

TEST_F(PostgresStore, ColumnsThatDisagreeWithTheRecordBlockTheLock) {
    const auto store = open();
    for (const char* change :
         {"token = token + 1", "lock_id = gen_random_uuid()", "lock_id = NULL, expires_at = NULL"}) {
        must(store->apply_one(by_alice(lock(change)), soon()));
        by_hand_("UPDATE " + schema_ + ".locks SET " + change + " WHERE name = " + ByHand::bytes(change));
        EXPECT_THAT(store->inspect(lock(change), soon()), RefusedWith(Errc::record_corrupt)) << change;
        EXPECT_THAT(store->apply_one(by_bob(lock(change)), soon()), RefusedWith(Errc::record_corrupt)) << change;
    }
}

// For people that read the tables with SQL.
TEST_F(PostgresStore, TheColumnsSayWhatTheEventsAndTheLeaseSay) {
    const auto store = open();
    const auto time = [](Instant instant) { return instant.time_since_epoch().count(); };
    Acquire alice = by_alice(lock("x"));
    alice.holder.user = "uid 7";
    must(store->apply_one(alice, soon()));
    must(store->apply_one(Break{lock("x"), alice.as.lock_id, "root", "stuck"}, soon()));
    Acquire bob = by_bob(lock("x"));
    bob.holder.user = "uid 8";
    bob.operation = "deploy";
    bob.reason = "v2";
    must(store->apply_one(bob, soon()));
    must(store->apply_one(renewal(bob), soon()));
    for (const AuditEvent& one : must(store->history({.name = lock("x")}, soon())))
        EXPECT_EQ(by_hand_(fmt::format("SELECT concat_ws('|', at, event, token, lock_id, holder, user_name, actor, "
                                       "reason) FROM {}.audit WHERE seq = {}",
                                       schema_, one.seq)),
                  fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", time(one.at), name_of(one.kind), one.token.value,
                              one.lock_id.text(), one.holder.text, one.holder.user, one.actor, one.reason));
    const LockStatus status = must(store->inspect(lock("x"), soon()));
    const Lease& lease = *status.lease;
    EXPECT_EQ(by_hand_("SELECT concat_ws('|', token, lock_id, holder, user_name, operation, reason, acquired_at, "
                       "renewed_at, expires_at, seq) FROM " +
                       row_of_lock(lock("x"))),
              fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", status.token.value, lease.lock_id.text(), lease.holder.text,
                          lease.holder.user, lease.operation, lease.reason, time(lease.acquired_at),
                          time(lease.renewed_at), time(lease.expires_at), status.seq));
}

TEST_F(PostgresStore, ALockWithAHistoryAndNoRecordIsNotFree) {
    const auto store = open();
    must(store->apply_one(by_alice(lock("x")), soon()));
    by_hand_("ALTER TABLE " + schema_ + ".locks DISABLE TRIGGER record_stays");
    by_hand_("DELETE FROM " + schema_ + ".locks");
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::record_corrupt));
    }
    EXPECT_THAT(store->apply_one(by_bob(lock("y")), soon()), Granted());
}

TEST_F(PostgresStore, NorIsOneWhoseFirstEventsWerePruned) {
    const auto store = open();
    const Acquire alice = by_alice(lock("x"));
    must(store->apply_one(alice, soon()));
    must(store->apply_one(renewal(alice), soon()));
    must(store->apply_one(Prune{lock("x"), 1, "root"}, soon()));
    by_hand_("ALTER TABLE " + schema_ + ".locks DISABLE TRIGGER record_stays");
    by_hand_("DELETE FROM " + schema_ + ".locks");
    const auto other = open();
    must(other->apply_one(by_bob(lock("y")), soon()));
    for (const auto& one : {store.get(), other.get()})
        EXPECT_THAT(one->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::record_corrupt));
}

TEST_F(PostgresStore, AStoreThatWasThereAndIsGoneIsNotCreatedAgainByTheSameObject) {
    const auto store = open();
    must(store->apply_one(by_alice(lock("x")), soon()));
    by_hand_("DROP SCHEMA " + schema_ + " CASCADE");
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(by_hand_("SELECT to_regnamespace('" + schema_ + "') IS NULL"), "t");
    EXPECT_THAT(open()->apply_one(by_bob(lock("x")), soon()), Granted());
}

TEST_F(PostgresStore, AMissingTableAndANewerFormatAreToldApartFromNoStore) {
    const auto store = open();
    must(store->apply_one(by_alice(lock("x")), soon()));
    by_hand_("ALTER TABLE " + schema_ + ".queue RENAME TO elsewhere");
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::record_corrupt));
    by_hand_("UPDATE " + schema_ + ".meta SET format = 4");
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::format_unsupported));
}

TEST_F(PostgresStore, LocksAndEventsAreNotTruncatedByMistake) {
    must(open()->apply_one(by_alice(lock("x")), soon()));
    for (const char* table : {"locks", "audit"})
        EXPECT_THROW(by_hand_("TRUNCATE " + schema_ + "." + table), std::runtime_error) << table;
    EXPECT_EQ(must(open()->inspect(lock("x"), soon())).seq, 1U);
}

TEST_F(PostgresStore, TheTablesOfAnotherProgramAreLeftAlone) {
    by_hand_("CREATE SCHEMA " + schema_);
    by_hand_("CREATE TABLE " + schema_ + ".locks (id int)");
    const auto store = open();
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_EQ(by_hand_("SELECT count(*) FROM pg_tables WHERE schemaname = '" + schema_ + "'"), "1");
}

TEST_F(PostgresStore, WhatInitPrintsIsWhatTheFirstUseCreates) {
    const auto objects = [&](const std::string& schema) {
        return by_hand_(
            "SELECT string_agg(line, E'\\n' ORDER BY line) FROM (SELECT table_name || '.' || column_name || ' ' || "
            "data_type AS line FROM information_schema.columns WHERE table_schema = '" +
            schema +
            "' UNION ALL SELECT event_object_table || ' ' || trigger_name FROM information_schema.triggers "
            "WHERE trigger_schema = '" +
            schema +
            "' UNION ALL SELECT indexname FROM pg_indexes WHERE "
            "schemaname = '" +
            schema + "') AS o");
    };
    must(open()->apply({}, soon()));
    std::string printed(must(schema_of(url())));
    const std::string by_a_person = random_schema();
    for (std::size_t at = 0; (at = printed.find("\"holdfast\"", at)) != std::string::npos;)
        printed.replace(at, 10, "\"" + by_a_person + "\"");
    by_hand_(printed);
    EXPECT_EQ(objects(by_a_person), objects(schema_));
    const auto store = must(open_store(postgres_url(port_, "schema=" + by_a_person)));
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), soon()), Granted());
    EXPECT_EQ(by_hand_("SELECT name || ' ' || state FROM " + by_a_person + ".status"), "x held");
    by_hand_("DROP SCHEMA " + by_a_person + " CASCADE");
}

TEST_F(PostgresStore, AWrongPasswordAndABadUrlAreRefusedWithoutShowingIt) {
    const std::string secret = "hunter2-secret";
    const std::string place = "127.0.0.1:" + std::to_string(port_) + "/postgres";
    for (const std::string& bad :
         {"postgres://holdfast:" + secret + "@" + place, "postgres://holdfast@" + place + "?password=" + secret,
          "postgres://holdfast:" + secret + "@127.0.0.1:1/postgres", "postgres://holdfast:" + secret + "@[::1/postgres",
          "postgres://holdfast:" + secret + "@" + place + "?schema=Robert%27",
          "postgres://holdfast:" + secret + "@" + place + "?nonsense=1", "postgres:holdfast:" + secret + "@" + place}) {
        const auto store = open_store(bad);
        ASSERT_FALSE(store);
        EXPECT_THAT(store.error().message, testing::Not(testing::HasSubstr(secret)));
    }
    EXPECT_THAT(open_store("postgres://holdfast:" + secret + "@" + place), RefusedWith(Errc::denied));
    EXPECT_THAT(open_store("postgres://holdfast@127.0.0.1:1/x"), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(open()->info().url, testing::Not(testing::HasSubstr(std::string(server_password))));
}

// Nobody on the way may read the password or answer in the server's place.
TEST_F(PostgresStore, AHostElsewhereMustProveWhoItIs) {
    const auto elsewhere = [&](const std::string& parameters) {
        return open_store(
            fmt::format("postgres://{}:{}@db.example.invalid/postgres?hostaddr=127.0.0.1&port={}&schema={}{}",
                        server_user_name, server_password, port_, schema_, parameters));
    };
    EXPECT_THAT(elsewhere("&sslmode=prefer"), Granted());
    EXPECT_THAT(elsewhere(""), RefusedWith(Errc::store_unavailable)) << "the server has no certificate";
}

}  // namespace
}  // namespace holdfast::tests
