// Goal: PostgreSQL and MySQL get today's format whole or not at all, whatever else happens meanwhile. Method: a store
// of format 1, and what an older program or an administrator does to it by hand.
#include "holdfast/open.hpp"
#include "stores/stored_store.hpp"
#include "support/matchers.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"

#include <gmock/gmock.h>

#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

/// What both can be asked, each in its own words.
class Shell {
public:
    explicit Shell(const StoredStore& stored, std::string kind) : kind_(std::move(kind)), name_(stored.name()) {
        const std::uint16_t port = shared_server_port(kind_);
        if (is_postgres())
            postgres_ = std::make_unique<ByHand>(port);
        else
            mysql_ = std::make_unique<MysqlByHand>(port, name_);
    }
    [[nodiscard]] bool is_postgres() const { return kind_ == "postgres"; }
    [[nodiscard]] std::string table(std::string_view name) const {
        return (is_postgres() ? name_ + "." : "holdfast_") + std::string(name);
    }
    /// The first value of the answer.
    std::string operator()(const std::string& sql) {
        if (is_postgres()) return (*postgres_)(sql);
        const auto rows = mysql_->run(sql);
        return rows.empty() ? "" : rows[0].at(0);
    }
    std::string format() { return (*this)("SELECT format FROM " + table("meta")); }
    std::string used() { return (*this)("SELECT CASE WHEN used THEN 'yes' ELSE 'no' END FROM " + table("meta")); }
    void empty() {
        for (const char* name : {"locks", "queue", "audit"}) (*this)("TRUNCATE TABLE " + table(name));
    }

private:
    const std::string kind_;
    const std::string name_;
    std::unique_ptr<ByHand> postgres_{};
    std::unique_ptr<MysqlByHand> mysql_{};
};

class SqlUpgrade : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static bool is_postgres() { return GetParam() == "postgres"; }
    [[nodiscard]] auto change(const Request& request) const {
        return stored_.open()->apply_one(request, stored_.soon());
    }

    /// Waits until an upgrade waits for the transactions that have read the table `meta`.
    void await_upgrade() {
        const std::string question =
            is_postgres() ? fmt::format(
                                "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = "
                                "'AccessExclusiveLock' AND relation = '{}.meta'::regclass",
                                stored_.name())
                          : fmt::format(
                                "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND state "
                                "LIKE 'Waiting for table metadata lock%' AND info LIKE 'ALTER%COMMENT%'",
                                stored_.name());
        Shell watcher(stored_, GetParam());
        for (const Deadline end = Deadline::in(host_clock(), 20s); watcher(question) == "0";) {
            if (end.passed(host_clock())) throw std::runtime_error("nobody has begun to upgrade");
            std::this_thread::sleep_for(5ms);
        }
    }

    const StoredStore stored_{GetParam()};
    Shell shell_{stored_, GetParam()};
};

TEST_P(SqlUpgrade, ComesWithTheFirstChangeAndNotWithReading) {
    const auto reader = stored_.open();
    must(reader->inspect(lock("held"), stored_.soon()));
    EXPECT_EQ(shell_.format(), "1");
    EXPECT_FALSE(reader->info().was_used);
    must(stored_.open()->apply({}, stored_.soon()));
    EXPECT_EQ(shell_.format(), "3");
    EXPECT_EQ(shell_.used(), "yes");
    must(reader->inspect(lock("held"), stored_.soon()));
    EXPECT_TRUE(reader->info().was_used);
    EXPECT_THAT(reader->apply_one(by_bob(lock("x")), stored_.soon()), Granted());
}

TEST_P(SqlUpgrade, OfAStoreWithoutLocksDoesNotSayThatItWasUsed) {
    shell_.empty();
    must(stored_.open()->apply({}, stored_.soon()));
    EXPECT_EQ(shell_.format(), "3");
    EXPECT_EQ(shell_.used(), "no");
    EXPECT_THAT(change(by_bob(lock("x"))), Granted());
    EXPECT_EQ(shell_.used(), "yes");
}

// An older program has read the format, and writes the store's first lock while somebody upgrades.
TEST_P(SqlUpgrade, WaitsForTransactionsThatHaveSeenTheOldFormat) {
    for (const char* table : {"locks", "audit"})
        shell_(fmt::format("CREATE TABLE {0}_saved AS SELECT * FROM {0}", shell_.table(table)));
    // The last step that waits: others have gone as far as that.
    if (!is_postgres()) shell_("ALTER TABLE holdfast_meta ADD COLUMN used TINYINT NOT NULL DEFAULT 0");
    shell_.empty();
    shell_(is_postgres() ? "BEGIN" : "START TRANSACTION");
    EXPECT_EQ(shell_.format(), "1");
    const auto newer = stored_.open();
    auto upgraded = std::async(std::launch::async, [&] { return newer->apply({}, stored_.soon()); });
    await_upgrade();
    for (const char* table : {"locks", "audit"})
        shell_(fmt::format("INSERT INTO {0} SELECT * FROM {0}_saved", shell_.table(table)));
    shell_("COMMIT");
    must(upgraded.get());
    EXPECT_EQ(shell_.format(), "3");
    EXPECT_EQ(shell_.used(), "yes");
}

TEST_P(SqlUpgrade, IsLeftToUsersThatMayDoIt) {
    const std::string user = stored_.name().substr(0, 20);
    std::string url = stored_.url();
    if (is_postgres()) {
        shell_(
            fmt::format("CREATE ROLE {0}; GRANT USAGE ON SCHEMA {1} TO {0}; GRANT SELECT, INSERT, UPDATE, DELETE ON "
                        "ALL TABLES IN SCHEMA {1} TO {0}",
                        user, stored_.name()));
        url += "&options=-c%20role%3D" + user;
    } else {
        shell_(fmt::format("CREATE USER {}@'127.0.0.1' IDENTIFIED BY '{}'", user, server_password));
        shell_(fmt::format("GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO {}@'127.0.0.1'", stored_.name(), user));
        url.replace(url.find(server_user_name), server_user_name.size(), user);
    }
    const auto store = must(open_store(url, stored_.clock()));
    EXPECT_EQ(must(store->inspect(lock("held"), stored_.soon())).state, LockState::held);
    const Reply refused = store->apply_one(by_bob(lock("x")), stored_.soon());
    ASSERT_THAT(refused, RefusedWith(Errc::denied));
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("format 3"), HasSubstr("`holdfast init`")));
    EXPECT_EQ(shell_.format(), "1");

    must(stored_.open()->apply({}, stored_.soon()));
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), stored_.soon()), Granted());
    if (is_postgres())
        shell_(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", user));
    else
        shell_(fmt::format("DROP USER {}@'127.0.0.1'", user));
}

// Format 2 has the mark already, and differs in the number alone.
TEST_P(SqlUpgrade, OfFormatTwoComesWithTheFirstChangeAndKeepsTheMark) {
    must(stored_.open()->apply({}, stored_.soon()));
    shell_("UPDATE " + shell_.table("meta") + " SET format = 2");
    const auto reader = stored_.open();
    EXPECT_EQ(must(reader->inspect(lock("held"), stored_.soon())).state, LockState::held);
    EXPECT_TRUE(reader->info().was_used);
    EXPECT_EQ(shell_.format(), "2");
    EXPECT_THAT(stored_.open()->apply_one(by_bob(lock("x")), stored_.soon()), Granted());
    EXPECT_EQ(shell_.format(), "3");
    EXPECT_TRUE(reader->info().was_used);
    EXPECT_THAT(reader->apply_one(by_bob(lock("y")), stored_.soon()), Granted());
}

TEST_P(SqlUpgrade, OfANewerFormatIsRefused) {
    shell_("UPDATE " + shell_.table("meta") + " SET format = 4");
    EXPECT_THAT(open_store(stored_.url()), RefusedWith(Errc::format_unsupported));
}

// Only MySQL: in PostgreSQL it is one transaction.
TEST(MysqlUpgrade, ThatStoppedHalfWayIsFinished) {
    for (const bool refuses_older : {false, true}) {
        const StoredStore stored("mysql");
        Shell shell(stored, "mysql");
        shell("ALTER TABLE holdfast_meta ADD COLUMN used TINYINT NOT NULL DEFAULT 0");
        if (refuses_older) shell("UPDATE holdfast_meta SET format = 0");
        EXPECT_EQ(must(stored.open()->inspect(lock("held"), stored.soon())).state, LockState::held);
        EXPECT_THAT(stored.open()->apply_one(by_bob(lock("x")), stored.soon()), Granted());
        EXPECT_EQ(shell.format(), "3");
        EXPECT_EQ(shell.used(), "yes");
    }
}

TEST_P(SqlUpgrade, LeavesWhatTheFirstUseWouldCreate) {
    const auto columns = [](Shell& shell, const std::string& schema) {
        return shell(
            "SELECT " +
            std::string(is_postgres() ? "string_agg(line, ',' ORDER BY line)"
                                      : "GROUP_CONCAT(line ORDER BY line SEPARATOR ',')") +
            " FROM (SELECT concat(table_name, '.', column_name, ' ', data_type, ' ', is_nullable) AS line FROM "
            "information_schema.columns WHERE table_schema = '" +
            schema + "') AS o");
    };
    const auto triggers = [](Shell& shell, const std::string& schema) {
        if (!is_postgres()) return std::string();
        return shell(
            "SELECT string_agg(t.tgrelid::regclass::text || ' ' || t.tgname || ' ' || t.tgtype, ',' ORDER BY "
            "tgname) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = '" +
            schema + "'::regnamespace");
    };
    const auto without = [](std::string text, const std::string& name) {
        for (std::size_t at = 0; (at = text.find(name)) != std::string::npos;) text.erase(at, name.size());
        return text;
    };
    must(stored_.open()->apply({}, stored_.soon()));
    const ServerPlace place(GetParam(), shared_server_port(GetParam()));
    must(must(open_store(place.url()))->apply({}, Deadline::in(host_clock(), 20s)));
    EXPECT_EQ(columns(shell_, stored_.name()), columns(shell_, place.name()));
    EXPECT_EQ(without(triggers(shell_, stored_.name()), stored_.name()),
              without(triggers(shell_, place.name()), place.name()));
    shell_(is_postgres() ? "DROP SCHEMA " + place.name() + " CASCADE" : "DROP DATABASE " + place.name());
}

INSTANTIATE_TEST_SUITE_P(Servers, SqlUpgrade, testing::Values("postgres", "mysql"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
