// Goal: data that was damaged or altered blocks a lock; it never frees it, lowers its token or shows
// another holder. Method: flip bytes of a real database, and alter rows through SQLite itself.

#include "holdfast/open.hpp"
#include "sqlite_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;

class SqliteDamage : public testing::Test {
protected:
    [[nodiscard]] fs::path file() const { return folder_.path() / "locks.db"; }
    [[nodiscard]] Result<std::unique_ptr<Store>> open() const {
        return open_store("sqlite:" + file().string() + "?sync=off", clock_);
    }

    Reply apply(const Request& request) { return must(open())->apply_one(request, Deadline::never()); }
    [[nodiscard]] Result<LockStatus> inspect(const LockName& name) const {
        const auto store = open();
        if (!store) return std::unexpected(store.error());
        return (*store)->inspect(name, Deadline::never());
    }

    /// What a careful reader can learn of one lock.
    [[nodiscard]] Result<std::pair<LockStatus, std::vector<AuditEvent>>> verified(const LockName& name) const {
        const auto store = open();
        if (!store) return std::unexpected(store.error());
        auto status = (*store)->inspect(name, Deadline::never());
        if (!status) return std::unexpected(status.error());
        auto events = (*store)->history({.name = name}, Deadline::never());
        if (!events) return std::unexpected(events.error());
        if (auto chain = verify_chain(*events, *status); !chain) return std::unexpected(chain.error());
        return std::pair{std::move(*status), std::move(*events)};
    }

    const TempFolder folder_;
    ManualClock clock_;
};

TEST_F(SqliteDamage, TheSchemaIsExactlyWhatTheDatabaseContains) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    const std::string_view schema = must(schema_of("sqlite:x"));
    std::size_t length = 0;
    for (const std::string& sql : ByHand(file()).column("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")) {
        EXPECT_NE(schema.find(sql + ";\n"), std::string_view::npos) << sql;
        length += sql.size();
    }
    // And nothing else is in it than comments, empty lines and the two numbers that mark the format.
    EXPECT_GT(length, schema.size() * 7 / 10);
    TempFolder other;
    ByHand fresh(other.path() / "fresh.db");
    ASSERT_EQ(fresh.execute(std::string(schema)), SQLITE_OK);
    const std::string objects = "SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
    EXPECT_EQ(fresh.column(objects), ByHand(file()).column(objects));
    for (const char* mark : {"PRAGMA application_id", "PRAGMA user_version"})
        EXPECT_EQ(fresh.column(mark), ByHand(file()).column(mark));
}

TEST_F(SqliteDamage, AFlippedByteNeverChangesWhatALockSays) {
    const LockName name = lock("prod/migrate");
    const Acquire first = by_alice(name);
    ASSERT_THAT(apply(first), Granted());
    ASSERT_THAT(apply(release(first)), Granted());
    ASSERT_THAT(apply(by_bob(name)), Granted());
    ASSERT_THAT(apply(queued(by_carol(name))), RefusedWith(Errc::lock_conflict));
    ASSERT_THAT(apply(by_alice(lock("another"))), Granted());

    const std::string sound = bytes_of(file());
    const auto expected = must(verified(name));
    std::size_t noticed = 0;
    for (std::size_t i = 0; i < sound.size(); ++i) {
        // Empty space is most of the file. One byte in sixteen of it shows that nobody reads it.
        if (sound[i] == 0 && i % 16 != 0) continue;
        const int flipped = i % 2 == 0 ? 0xff : 1 << (i / 2 % 8);
        write_byte(file(), i, static_cast<char>(sound[i] ^ flipped));
        auto seen = verified(name);
        write_byte(file(), i, sound[i]);
        for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(file().string() + suffix);
        if (!seen) {
            ++noticed;
            continue;
        }
        // A place in the queue is no promise, but the holder of the lock is.
        seen->first.waiters = expected.first.waiters;
        ASSERT_EQ(seen->first, expected.first) << "byte " << i;
        ASSERT_EQ(seen->second, expected.second) << "byte " << i;
    }
    EXPECT_GT(noticed, 1000U);
    EXPECT_TRUE(bytes_of(file()) == sound) << "a reader changed a damaged file";
}

TEST_F(SqliteDamage, ARecordWithoutItsRowIsNotFree) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ByHand by_hand(file());
    ASSERT_EQ(by_hand.execute("DROP TRIGGER holdfast_locks_stay; DELETE FROM holdfast_locks; "
                              "CREATE TRIGGER holdfast_locks_stay BEFORE DELETE ON holdfast_locks\nBEGIN\n"
                              "    SELECT RAISE(ROLLBACK, 'holdfast: the record of a lock is never deleted');\nEND"),
              SQLITE_OK);
    EXPECT_THAT(inspect(lock("a")), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(apply(by_bob(lock("a"))), RefusedWith(Errc::record_corrupt));
}

TEST_F(SqliteDamage, AnIndexThatLeadsToTheRowOfAnotherLockBlocksIt) {
    ASSERT_THAT(apply(by_alice(lock("first"))), Granted());
    ASSERT_THAT(apply(by_bob(lock("second"))), Granted());
    // An entry is the name and the number of the row.
    const std::string bytes = bytes_of(file());
    std::size_t altered = 0;
    for (auto at = bytes.find("second\x02"); at != std::string::npos; at = bytes.find("second\x02", at + 1), ++altered)
        write_byte(file(), at + std::strlen("second"), '\x01');
    ASSERT_GT(altered, 0U);
    EXPECT_THAT(inspect(lock("second")), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(apply(by_carol(lock("second"))), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(inspect(lock("first")), Granted());
}

TEST_F(SqliteDamage, AnAlteredColumnBlocksItsLockAndNoOther) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ASSERT_EQ(ByHand(file()).execute("UPDATE holdfast_locks SET expires_at = 1"), SQLITE_OK);
    EXPECT_THAT(inspect(lock("a")), RefusedWith(Errc::record_corrupt));
    const std::vector<Request> batch{by_bob(lock("a")), by_bob(lock("b"))};
    const auto replies = must(must(open())->apply(batch, Deadline::never()));
    EXPECT_THAT(replies[0], RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(replies[1], Granted());
    EXPECT_THAT(must(open())->list({}, Deadline::never()), RefusedWith(Errc::record_corrupt));
}

TEST_F(SqliteDamage, AnAlteredTicketBlocksTheQueue) {
    const Acquire first = by_alice(lock("a"));
    ASSERT_THAT(apply(first), Granted());
    ASSERT_THAT(apply(queued(by_bob(lock("a")))), RefusedWith(Errc::lock_conflict));
    ASSERT_EQ(ByHand(file()).execute("UPDATE holdfast_queue SET holder = 'mallory'"), SQLITE_OK);
    EXPECT_THAT(apply(release(first)), RefusedWith(Errc::record_corrupt));
}

TEST_F(SqliteDamage, AnAlteredAuditEventBreaksTheChain) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ASSERT_EQ(ByHand(file()).execute("UPDATE holdfast_audit SET holder = 'mallory'"), SQLITE_OK);
    EXPECT_THAT(verified(lock("a")), RefusedWith(Errc::audit_chain_broken));
}

TEST_F(SqliteDamage, AChangeWhoseAuditEventCannotBeWrittenDoesNotHappen) {
    const Acquire held = by_alice(lock("a"));
    ASSERT_THAT(apply(held), Granted());
    const auto before = must(inspect(lock("a")));
    ASSERT_EQ(ByHand(file()).execute(
                  "INSERT INTO holdfast_audit SELECT NULL, name, seq + 1, at, event, token, lock_id, holder, user, "
                  "actor, reason, details, prev_hash, hash, newest_at FROM holdfast_audit"),
              SQLITE_OK);
    EXPECT_THAT(apply(release(held)), RefusedWith(Errc::record_corrupt));
    EXPECT_EQ(must(inspect(lock("a"))), before);
}

TEST_F(SqliteDamage, AnAlteredIdentityBlocksTheStore) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ASSERT_EQ(ByHand(file()).execute("UPDATE holdfast_meta SET store_id = '00000000-0000-4000-8000-000000000000'"),
              SQLITE_OK);
    EXPECT_THAT(open(), RefusedWith(Errc::record_corrupt));
}

TEST_F(SqliteDamage, AnAlteredSchemaBlocksTheStore) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ASSERT_EQ(ByHand(file()).execute(
                  "CREATE TRIGGER sneaky AFTER INSERT ON holdfast_audit BEGIN DELETE FROM holdfast_queue; END"),
              SQLITE_OK);
    EXPECT_THAT(open(), RefusedWith(Errc::record_corrupt));
    ASSERT_EQ(ByHand(file()).execute("DROP TRIGGER sneaky"), SQLITE_OK);
    EXPECT_THAT(open(), Granted());
    ASSERT_EQ(ByHand(file()).execute("DROP TRIGGER holdfast_locks_token_rises"), SQLITE_OK);
    EXPECT_THAT(open(), RefusedWith(Errc::record_corrupt));
}

TEST_F(SqliteDamage, AToolThatRewritesTheFileKeepsTheStoreUsable) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ASSERT_EQ(ByHand(file()).execute("VACUUM"), SQLITE_OK);
    ASSERT_EQ(ByHand(file()).execute("ANALYZE"), SQLITE_OK);
    EXPECT_THAT(apply(by_bob(lock("a"))), RefusedWith(Errc::lock_conflict));
}

TEST_F(SqliteDamage, TheDatabaseItselfKeepsTokensFromFalling) {
    ASSERT_THAT(apply(by_alice(lock("a"))), Granted());
    ByHand by_hand(file());
    EXPECT_EQ(by_hand.execute("UPDATE holdfast_locks SET token = token - 1"), SQLITE_CONSTRAINT);
    EXPECT_EQ(by_hand.execute("UPDATE holdfast_locks SET name = 'b'"), SQLITE_CONSTRAINT);
    EXPECT_EQ(by_hand.execute("DELETE FROM holdfast_locks"), SQLITE_CONSTRAINT);
    EXPECT_EQ(by_hand.execute("INSERT OR REPLACE INTO holdfast_locks (name, token, seq, record) "
                              "VALUES ('a', 1, 1, zeroblob(32))"),
              SQLITE_CONSTRAINT);
    EXPECT_EQ(by_hand.execute("UPDATE holdfast_locks SET token = 9007199254740992"), SQLITE_CONSTRAINT);
    EXPECT_THAT(inspect(lock("a")), Granted());
}

TEST_F(SqliteDamage, EveryFieldOfALeaseComesBackAsItWas) {
    Acquire request = by_alice(lock("näme/☃ with 'quotes\""));
    request.holder.user = "al\"ice";
    request.operation = "op";
    request.reason = std::string("line\none\0two\\", 13);
    request.max_hold = std::chrono::hours{2};
    request.meta = {{"", "empty key"}, {"quote\"", "back\\slash"}, {"tab", "\t\x01\x1f"}, {"ümlaut", "☃"}};
    const auto granted = must(apply(request));
    Ask ask{request.name,
            Credentials::random(),
            {"bob", "b"},
            "because",
            lasting(std::chrono::seconds{5}),
            lasting(std::chrono::seconds{9})};
    const auto asked = must(apply(ask));
    EXPECT_EQ(must(inspect(request.name)), asked.lock);
    EXPECT_EQ(asked.lock.lease, granted.lock.lease);
    EXPECT_EQ(asked.lock.lease->meta, request.meta);
    EXPECT_EQ(asked.lock.lease->reason, request.reason);
    EXPECT_THAT(verified(request.name), Granted());
}

}  // namespace
}  // namespace holdfast::tests
