// Goal: what is not as this store left it is never taken for something else: a place in a queue, an event, a table, the
// store's identity. Method: a real server, whose tables are altered by hand behind the store's back.
#include "stores/postgres_fixture.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

auto is(bool ok, const std::string& name, const std::string& words) {
    return AllOf(Field(&Finding::name, name), Field(&Finding::ok, ok), Field(&Finding::detail, HasSubstr(words)));
}

class PostgresDamage : public PostgresFixture {
protected:
    /// Alice holds the lock, and Bob waits.
    struct Line {
        Acquire alice;
        Acquire bob;
    };
    [[nodiscard]] Line stand_in_line(const LockName& name) {
        Line line{by_alice(name, 1h), queued(by_bob(name, 1h), 1h)};
        must(store_->apply_one(line.alice, soon()));
        EXPECT_THAT(store_->apply_one(line.bob, soon()), RefusedWith(Errc::lock_conflict));
        return line;
    }
    /// In SQL, where the places in its queue are.
    [[nodiscard]] std::string places_of(const LockName& name) const {
        return schema_ + ".queue WHERE name = " + ByHand::bytes(name.text());
    }

    const std::unique_ptr<Store> store_ = open();
};

// Skipping a ticket that cannot be read would let another waiter pass its owner.
TEST_F(PostgresDamage, APlaceInTheQueueThatCannotBeReadBlocksItsLock) {
    for (const std::string change : {"data = set_byte(data, 30, (get_byte(data, 30) + 1) % 256)", "number = number + 1",
                                     "lock_id = gen_random_uuid()", "data = ''"}) {
        SCOPED_TRACE(change);
        const LockName name = lock(change);
        const Line line = stand_in_line(name);
        const std::string seq = by_hand_("SELECT seq FROM " + row_of_lock(name));
        by_hand_("UPDATE " + schema_ + ".queue SET " + change + " WHERE name = " + ByHand::bytes(name.text()));
        // One that remembers the lock, and one that has to read it.
        const auto other = open();
        for (Store* each : {store_.get(), other.get()}) {
            EXPECT_THAT(each->apply_one(release(line.alice), soon()), RefusedWith(Errc::record_corrupt));
            EXPECT_THAT(each->apply_one(queued(by_carol(name)), soon()), RefusedWith(Errc::record_corrupt));
        }
        EXPECT_EQ(by_hand_("SELECT seq FROM " + row_of_lock(name)), seq);
        EXPECT_THAT(store_->apply_one(by_bob(lock("beside " + change)), soon()), Granted()) << "no other lock";
    }
}

TEST_F(PostgresDamage, AnEventInThePlaceOfAnotherIsNotShownAsThat) {
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    must(store_->apply_one(renewal(mine), soon()));
    must(store_->apply_one(by_bob(lock("y")), soon()));
    const std::string data = "(SELECT data FROM " + schema_ + ".audit WHERE name = 'x' AND seq = 2)";
    by_hand_("BEGIN; UPDATE " + schema_ + ".audit SET data = " + data + " WHERE name = 'x' AND seq = 1");
    by_hand_("COMMIT");
    for (const HistoryQuery& query : {HistoryQuery{}, HistoryQuery{.name = lock("x")},
                                      HistoryQuery{.name = lock("x"), .which = HistoryQuery::Which::oldest}})
        EXPECT_THAT(store_->history(query, soon()), RefusedWith(Errc::record_corrupt)) << "of another number";
    by_hand_("UPDATE " + schema_ + ".audit SET data = " + data + " WHERE name = 'y'");
    EXPECT_THAT(store_->history({.name = lock("y")}, soon()), RefusedWith(Errc::record_corrupt)) << "of another lock";
}

TEST_F(PostgresDamage, AStoreWithoutItsIdentityIsBlockedAndNotNew) {
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    by_hand_("DELETE FROM " + schema_ + ".meta");
    EXPECT_THAT(store_->inspect(lock("x"), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store_->list({}, soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store_->apply_one(renewal(mine), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store_->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store_->apply_one(queued(by_bob(lock("x"))), soon()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(open_store(url()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store_->examine(soon()), Contains(is(false, "format", "identity")));
}

// A store of which nothing is left would be created anew, and all its locks would be free.
TEST_F(PostgresDamage, AStoreWithoutOneOfItsTablesIsNotOneThatNobodyHasUsed) {
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    for (const std::string table : {"locks", "queue", "audit"}) {
        SCOPED_TRACE(table);
        by_hand_("ALTER TABLE " + schema_ + "." + table + " RENAME TO elsewhere");
        const auto other = open();
        for (Store* each : {store_.get(), other.get()}) {
            EXPECT_THAT(each->inspect(lock("x"), soon()), RefusedWith(Errc::record_corrupt));
            EXPECT_THAT(each->apply_one(renewal(mine), soon()), RefusedWith(Errc::record_corrupt));
            EXPECT_THAT(each->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::record_corrupt));
            EXPECT_THAT(each->apply_one(queued(by_bob(lock("x"))), soon()), RefusedWith(Errc::record_corrupt));
        }
        if (table != "audit") {
            EXPECT_THAT(store_->list({}, soon()), RefusedWith(Errc::record_corrupt));
        } else {
            EXPECT_THAT(store_->history({}, soon()), RefusedWith(Errc::record_corrupt));
        }
        by_hand_("ALTER TABLE " + schema_ + ".elsewhere RENAME TO " + table);
    }
    EXPECT_THAT(store_->apply_one(renewal(mine), soon()), Granted()) << "it was only away";
}

// Nobody would ever wake that waiter.
TEST_F(PostgresDamage, AStoreThatVanishesUnderAWaiterEndsItsWait) {
    const Line line = stand_in_line(lock("x"));
    by_hand_("DROP SCHEMA " + schema_ + " CASCADE");
    const Deadline end = soon();
    for (const auto& ticket : {std::optional(line.bob.as.lock_id), std::optional<LockId>()}) {
        EXPECT_THAT(store_->wait_for_change({.name = lock("x"), .seen_seq = 1, .ticket = ticket}, end), Granted());
        EXPECT_FALSE(end.passed(host_clock()));
    }
}

TEST_F(PostgresDamage, NobodyQueuesInANewerFormat) {
    const Line line = stand_in_line(lock("x"));
    by_hand_("UPDATE " + schema_ + ".meta SET format = 4");
    EXPECT_THAT(store_->apply_one(queued(by_carol(lock("x"))), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_THAT(store_->apply_one(cancel(line.bob), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_EQ(by_hand_("SELECT count(*) FROM " + places_of(lock("x"))), "1");
    EXPECT_THAT(store_->examine(soon()), Contains(is(false, "format", "format 4")));
}

// What doctor says of rights is what a role can do: each that it lacks is named, and no other.
TEST_F(PostgresDamage, DoctorNamesEveryRightThatARoleLacks) {
    must(store_->apply_one(by_alice(lock("x")), soon()));
    const std::string rows = by_hand_("SELECT count(*) FROM " + schema_ + ".locks");
    const std::string role = schema_ + "_user";
    by_hand_(
        fmt::format("CREATE ROLE {1}; GRANT USAGE ON SCHEMA {0} TO {1}; GRANT ALL ON ALL TABLES IN SCHEMA {0} TO "
                    "{1}",
                    schema_, role));
    const auto store = open("options=-c%20role%3D" + role);
    const std::string enough = "may do all that the store needs";
    EXPECT_THAT(store->examine(soon()), Contains(is(true, "rights", enough)));
    EXPECT_EQ(by_hand_("SELECT count(*) FROM " + schema_ + ".locks"), rows) << "what doctor tried was taken back";
    for (const auto& [table, rights] : std::vector<std::pair<std::string, std::vector<std::string>>>{
             {"locks", {"INSERT", "UPDATE"}}, {"queue", {"INSERT", "UPDATE", "DELETE"}}, {"audit", {"INSERT"}}})
        for (const std::string& right : rights) {
            by_hand_(fmt::format("REVOKE {} ON {}.{} FROM {}", right, schema_, table, role));
            EXPECT_THAT(store->examine(soon()), Contains(is(false, "rights", "lacks " + right + " on " + table)));
            by_hand_(fmt::format("GRANT {} ON {}.{} TO {}", right, schema_, table, role));
        }
    by_hand_("REVOKE DELETE ON " + schema_ + ".audit FROM " + role);
    EXPECT_THAT(store->examine(soon()), Contains(is(true, "rights", "all but prune")));
    by_hand_("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

// Whatever a role or a database has as its default: the store's own changes say what they are.
TEST_F(PostgresDamage, DoctorMakesItsChangeAsTheStoreDoes) {
    must(store_->apply({}, soon()));
    const auto store = open("options=-c%20default_transaction_read_only%3Don&target_session_attrs=any");
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), soon()), Granted());
    EXPECT_THAT(store->examine(soon()), Contains(is(true, "writes", "accepted")));
}

TEST_F(PostgresDamage, NothingOfALockFallsOrGoesByHand) {
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    must(store_->apply_one(renewal(mine), soon()));
    const std::string update = "UPDATE " + schema_ + ".locks SET ";
    for (const std::string change :
         {"token = token - 1", "seq = seq - 1", "seq = 0, data = NULL", "name = 'y'", "name = ''", "token = -1",
          "token = 9007199254740992", "data = NULL", "lock_id = NULL", "expires_at = NULL"})
        EXPECT_THROW(by_hand_(update + change), std::runtime_error) << change;
    EXPECT_THROW(
        by_hand_("INSERT INTO " + schema_ + ".meta SELECT 2, format, store_id, created_at FROM " + schema_ + ".meta"),
        std::runtime_error)
        << "a store is one";
    EXPECT_THAT(store_->apply_one(renewal(mine), soon()), Granted());
}

// For people that read the tables with SQL.
TEST_F(PostgresDamage, TheViewAndTheQueueSayWhatTheLocksAre) {
    const auto state = [&](const LockName& name) {
        return by_hand_(
            fmt::format("SELECT concat_ws('|', state, token, holder, user_name, operation, reason, seq) FROM "
                        "{}.status WHERE name = '{}'",
                        schema_, name.text()));
    };
    Acquire alice = by_alice(lock("x"), 1h);
    alice.holder.user = "uid 7";
    alice.operation = "deploy";
    alice.reason = "v2";
    const FencingToken token = must(store_->apply_one(alice, soon())).lock.token;
    EXPECT_EQ(state(lock("x")), fmt::format("held|{}|alice|uid 7|deploy|v2|1", token.value));
    EXPECT_EQ(by_hand_(fmt::format("SELECT abs(extract(epoch FROM expires_at - acquired_at) - 3600) < 1 FROM {}.status",
                                   schema_)),
              "t");
    Acquire bob = queued(by_bob(lock("x")), 1h);
    bob.holder.user = "uid 8";
    EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(
        by_hand_("SELECT concat_ws('|', number >= 1, lock_id, holder, expires_at - written_at BETWEEN 3590000 AND "
                 "3600000) FROM " +
                 places_of(lock("x"))),
        "t|" + bob.as.lock_id.text() + "|bob|t");
    must(store_->apply_one(cancel(bob), soon()));
    must(store_->apply_one(release(alice), soon()));
    EXPECT_EQ(state(lock("x")), fmt::format("free|{}|2", token.value));
    must(store_->apply_one(by_alice(lock("y"), 50ms), soon()));
    while (must(store_->inspect(lock("y"), soon())).state != LockState::expired) continue;
    EXPECT_THAT(state(lock("y")), testing::StartsWith("expired|"));
    Acquire excluded = by_alice(lock("z"));
    excluded.unless_held = {lock("never granted")};
    must(store_->apply_one(excluded, soon()));
    EXPECT_EQ(by_hand_("SELECT count(*) FROM " + schema_ + ".status"), "3") << "what was only looked at is no lock";
    EXPECT_EQ(must(store_->list({.with_free = true}, soon())).size(), 3U);
}

// What people read in the columns is shown somehow; what the store keeps is exact.
TEST_F(PostgresDamage, AReasonWithEveryByteThatATextCanHaveComesBackAsItWas) {
    using namespace std::string_literals;
    for (const std::string& reason : {"a\0b"s, "\0"s, "\x01\x1f\x7f\r\n"s, "\u2028 \ufeff \U0001f512"s}) {
        Acquire mine = by_alice(lock("x"));
        mine.reason = reason;
        ASSERT_THAT(store_->apply_one(mine, soon()), Granted());
        EXPECT_EQ(must(store_->inspect(mine.name, soon())).lease->reason, reason);
        EXPECT_EQ(must(store_->history({.name = mine.name}, soon())).back().reason, reason);
        must(store_->apply_one(release(mine), soon()));
    }
}

// A database that cannot write every name would refuse some of them, or make two of them one.
TEST_F(PostgresDamage, ADatabaseThatCannotWriteEveryNameIsNotUsed) {
    const auto opened = [&](const std::string& encoding) {
        by_hand_(fmt::format("CREATE DATABASE {} ENCODING '{}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'", schema_,
                             encoding));
        const auto store = open_store(
            fmt::format("postgres://{}:{}@127.0.0.1:{}/{}", server_user_name, server_password, port_, schema_));
        by_hand_("DROP DATABASE " + schema_ + " WITH (FORCE)");
        return store.has_value() ? std::string("used") : std::string(row_of(store.error().code).name);
    };
    EXPECT_EQ(opened("LATIN1"), row_of(Errc::store_unsafe).name);
    EXPECT_EQ(opened("SQL_ASCII"), "used");
    EXPECT_EQ(opened("UTF8"), "used");
}

}  // namespace
}  // namespace holdfast::tests
