// Goal: a protected table takes nothing from a session without the newest lease, whatever program it is, and the
// commands say so. Method: the real program and the real psql, on the PostgreSQL that the run shares.
#include "cli/sandbox.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace holdfast::tests {
namespace {

using cli_test::Args;
using cli_test::Ended;
using cli_test::Environment;
using testing::AllOf;
using testing::HasSubstr;

class FenceProtect : public testing::Test {
protected:
    FenceProtect() {
        by_hand("CREATE SCHEMA " + schema_);
        by_hand("CREATE TABLE " + table_ + " (v BIGINT)");
        by_hand("INSERT INTO " + table_ + " VALUES (0)");
    }

    std::string by_hand(const std::string& sql) { return by_hand_(sql); }

    /// The fence is in the schema of the locks here, so that tests do not meet.
    [[nodiscard]] std::string store() const {
        return postgres_url(port_, "schema=" + schema_ + "&options=-csearch_path%3D" + schema_);
    }
    [[nodiscard]] Ended fence(Args args) {
        args.insert(args.begin(), "fence");
        args.insert(args.end(), {"--store", store()});
        return box_.run(args);
    }
    [[nodiscard]] Args psql(const std::string& sql) const {
        const std::string url = postgres_url(port_).replace(0, 8, "postgresql");
        return {"/usr/bin/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url};
    }
    [[nodiscard]] Args under(const std::string& lock, const Args& command, const Args& flags = {}) const {
        Args args{"run", lock, "--store", store(), "--wait", "1m"};
        args.insert(args.end(), flags.begin(), flags.end());
        args.emplace_back("--");
        args.insert(args.end(), command.begin(), command.end());
        return args;
    }
    [[nodiscard]] Ended protect(const std::string& lock) {
        return fence({"protect", "--table", table_, "--lock", lock});
    }

    cli_test::Sandbox box_;
    std::uint16_t port_ = shared_server_port("postgres");
    std::string schema_ = random_schema();
    std::string table_ = schema_ + ".accounts";
    ByHand by_hand_{port_};
};

TEST_F(FenceProtect, LetsPsqlWriteOnlyUnderTheLock) {
    const std::string lock = R"(area/a 'b' "c" \d)";
    ASSERT_EQ(protect(lock).status, 0);
    const std::string write = "UPDATE " + table_ + " SET v = v + 1";
    const Ended without = box_.run_program(psql(write));
    EXPECT_NE(without.status, 0);
    EXPECT_THAT(without.err, HasSubstr("E_FENCING_MISMATCH"));
    EXPECT_EQ(by_hand("SELECT v FROM " + table_), "0") << "reading is nobody's business";

    const Ended with = box_.run(under(lock, psql(write)));
    EXPECT_EQ(with.status, 0) << with.err;
    EXPECT_EQ(by_hand("SELECT v FROM " + table_), "1");
    EXPECT_NE(box_.run(under("another", psql(write))).status, 0) << "the lease of another lock";
    EXPECT_EQ(box_.run(under(lock, psql(write), {"--and", "another"})).status, 0) << "among several leases";
}

TEST_F(FenceProtect, RefusesASessionWithAnOlderLease) {
    ASSERT_EQ(protect("accounts").status, 0);
    const Ended first = box_.run(under("accounts", {"/bin/sh", "-c", "printf %s \"$PGOPTIONS\""}));
    ASSERT_THAT(first.out, HasSubstr("holdfast.leases="));
    const Environment of_first{{"PGOPTIONS", first.out}};
    const std::string write = "UPDATE " + table_ + " SET v = 7";
    EXPECT_EQ(box_.run_program(psql(write), of_first).status, 0) << "nobody has sealed since";
    ASSERT_EQ(box_.run(under("accounts", {"/bin/true"})).status, 0);
    const Ended late = box_.run_program(psql("UPDATE " + table_ + " SET v = 8"), of_first);
    EXPECT_THAT(late.err, HasSubstr("E_FENCING_MISMATCH"));
    EXPECT_EQ(by_hand("SELECT v FROM " + table_), "7");
}

TEST_F(FenceProtect, KeepsThePgOptionsOfTheCallerAndTellsNoSecret) {
    ASSERT_EQ(protect("accounts").status, 0);
    const Ended ended = box_.run(under("accounts", psql("SHOW statement_timeout; SHOW holdfast.leases")),
                                 {{"PGOPTIONS", "-c statement_timeout=12345"}});
    EXPECT_THAT(ended.out, AllOf(HasSubstr("12345ms"), HasSubstr(R"("name":"accounts")"), HasSubstr(R"("token":)")));
    EXPECT_THAT(ended.out, testing::Not(HasSubstr("\"lease\""))) << ended.out;
}

TEST_F(FenceProtect, CoversTruncateAndPartitionsAndReplicationSessions) {
    by_hand("CREATE TABLE " + schema_ + ".parted (v BIGINT) PARTITION BY RANGE (v)");
    by_hand("CREATE TABLE " + schema_ + ".part PARTITION OF " + schema_ + ".parted FOR VALUES FROM (0) TO (9)");
    table_ = schema_ + ".parted";
    ASSERT_EQ(protect("accounts").status, 0);
    for (const std::string& sql :
         {"INSERT INTO " + table_ + " VALUES (1)", "INSERT INTO " + schema_ + ".part VALUES (1)",
          "DELETE FROM " + table_, "TRUNCATE " + table_, "TRUNCATE " + schema_ + ".part",
          "SET session_replication_role = replica; INSERT INTO " + schema_ + ".part VALUES (1)"})
        EXPECT_THAT(box_.run_program(psql(sql)).err, HasSubstr("E_FENCING_MISMATCH")) << sql;

    by_hand("CREATE TABLE " + schema_ + ".later PARTITION OF " + table_ + " FOR VALUES FROM (9) TO (99)");
    EXPECT_THAT(fence({"status"}).out, HasSubstr("later belongs to a protected table and is not protected"));
    ASSERT_EQ(protect("accounts").status, 0);
    EXPECT_THAT(fence({"status"}).out, testing::Not(HasSubstr("is not protected")));
}

// Whatever way leads to the rows.
TEST_F(FenceProtect, CoversWaysThatDoNotNameTheTable) {
    by_hand("CREATE TABLE " + schema_ + ".parents (id BIGINT PRIMARY KEY)");
    by_hand("INSERT INTO " + schema_ + ".parents VALUES (0), (1)");
    by_hand("ALTER TABLE " + table_ + " ADD UNIQUE (v), ADD FOREIGN KEY (v) REFERENCES " + schema_ +
            ".parents ON DELETE CASCADE ON UPDATE CASCADE");
    by_hand("CREATE VIEW " + schema_ + ".seen AS SELECT v FROM " + table_);
    ASSERT_EQ(protect("accounts").status, 0);
    for (const std::string& sql :
         {"DELETE FROM " + schema_ + ".parents", "UPDATE " + schema_ + ".parents SET id = id + 7",
          "TRUNCATE " + schema_ + ".parents CASCADE", "UPDATE " + schema_ + ".seen SET v = 1",
          "INSERT INTO " + table_ + " VALUES (0) ON CONFLICT (v) DO UPDATE SET v = 1",
          "MERGE INTO " + table_ +
              " AS a USING (VALUES (1)) AS s (v) ON a.v = s.v WHEN NOT MATCHED THEN INSERT VALUES (1)",
          "WITH gone AS (DELETE FROM " + table_ + " RETURNING v) SELECT v FROM gone",
          "DO $$ BEGIN UPDATE " + table_ + " SET v = 1; END $$", "COPY " + table_ + " FROM PROGRAM 'echo 1'"})
        EXPECT_THAT(box_.run_program(psql(sql)).err, HasSubstr("E_FENCING_MISMATCH")) << sql;
    EXPECT_EQ(by_hand("SELECT string_agg(v::text, ' ') FROM " + table_), "0");
    EXPECT_EQ(box_.run(under("accounts", psql("DELETE FROM " + schema_ + ".parents WHERE id = 0"))).status, 0);
    EXPECT_EQ(by_hand("SELECT COUNT(*) FROM " + table_), "0") << "under the lock the row goes with its parent";
}

// Of the schema with the fence, whose name is in the body of its functions, and of the table.
TEST_F(FenceProtect, NamesThatNeedQuotesAreNamesLikeOthers) {
    const std::string odd = R"("q'""$holdfast$ %I {})" + schema_ + '"';
    by_hand("CREATE SCHEMA " + odd);
    table_ = odd + R"(."t'; -- ""$$")";
    by_hand("CREATE TABLE " + table_ + " (v BIGINT)");
    std::string encoded;
    for (const char letter : "-csearch_path=" + odd)
        encoded += (letter == ' ' ? "%5c" : "") + fmt::format("%{:02x}", static_cast<unsigned char>(letter));
    const std::string store = postgres_url(port_, "schema=" + schema_ + "&options=" + encoded);
    const auto run = [&](const Args& args) { return box_.run(args, {{"HOLDFAST_STORE", store}}); };
    const Ended made = run({"fence", "protect", "--table", table_, "--lock", "accounts"});
    ASSERT_EQ(made.status, 0) << made.err;
    const Args write = psql("INSERT INTO " + table_ + " VALUES (1)");
    EXPECT_THAT(box_.run_program(write).err, HasSubstr("E_FENCING_MISMATCH"));
    Args under{"run", "accounts", "--"};
    under.insert(under.end(), write.begin(), write.end());
    const Ended with = run(under);
    EXPECT_EQ(with.status, 0) << with.err;
    by_hand("DROP SCHEMA " + odd + " CASCADE");
}

TEST_F(FenceProtect, StatusTellsAndUnprotectTakesItAway) {
    ASSERT_EQ(protect("accounts").status, 0);
    ASSERT_EQ(box_.run(under("accounts", {"/bin/true"})).status, 0);
    const Ended status = fence({"status", "--json"});
    EXPECT_EQ(status.json().text("/seals/0/name"), "accounts");
    // Other tests protect tables of the same database.
    EXPECT_THAT(status.out, HasSubstr(R"({"table":")" + table_ + R"(","lock":"accounts","covered":true})"));
    ASSERT_EQ(fence({"unprotect", "--table", table_}).status, 0);
    EXPECT_EQ(box_.run_program(psql("UPDATE " + table_ + " SET v = 1")).status, 0);
    EXPECT_EQ(fence({"unprotect", "--table", table_}).status, 79) << "it is not protected any more";
}

TEST_F(FenceProtect, AStatementThatIsNotUnderstoodIsRefused) {
    EXPECT_EQ(fence({"protect", "--table", schema_ + ".nothing", "--lock", "x"}).status, 64);
    EXPECT_EQ(fence({"protect", "--table", table_}).status, 64);
    EXPECT_EQ(box_.run({"fence", "protect", "--table", "t", "--lock", "x", "--store", "sqlite:a.db"}).status, 64)
        << "the locks are not in PostgreSQL";
}

// Each reads with one psql and writes with another, as scripts do.
TEST_F(FenceProtect, ScriptsThatAddToACounterLoseNothing) {
    ASSERT_EQ(protect("accounts").status, 0);
    const std::string url = postgres_url(port_).replace(0, 8, "postgresql");
    box_.write(box_.work / "add.sh", "v=$(psql -X -A -t -c 'SELECT v FROM " + table_ + "' " + url +
                                         ") && psql -X -q -v ON_ERROR_STOP=1 -c \"UPDATE " + table_ +
                                         " SET v = $((v + 1))\" " + url + "\n");
    int done = 0;
    std::vector<cli_test::Running> running;
    for (int i = 0; i < 6; ++i) running.push_back(box_.start(under("accounts", {"/bin/sh", "add.sh"})));
    for (auto& one : running) done += one.wait().status == 0 ? 1 : 0;
    EXPECT_EQ(by_hand("SELECT v FROM " + table_), std::to_string(done));
    EXPECT_EQ(done, 6);
}

TEST_F(FenceProtect, InitPrintsAndInstallsTheFence) {
    const Ended printed = box_.run({"init", "--fence", "--print", "--store", store()});
    EXPECT_THAT(printed.out, AllOf(HasSubstr("CREATE TABLE"), HasSubstr("holdfast_assert")));
    ASSERT_EQ(box_.run({"init", "--fence", "--store", store()}).status, 0);
    EXPECT_EQ(by_hand("SELECT COUNT(*) FROM " + schema_ + ".holdfast_fence"), "0");
    EXPECT_EQ(by_hand("SELECT COUNT(*) FROM pg_proc WHERE proname = 'holdfast_assert' AND pronamespace = '" + schema_ +
                      "'::regnamespace"),
              "1");
}

}  // namespace
}  // namespace holdfast::tests
