// Goal: a statement that runs is ended from another thread, and says so by its class. Method: a statement that takes
// minutes on each database, cancelled again and again until it has ended; the test's alarm ends one that never does.
#include "sql/mysql/cancel.hpp"

#include "base/url.hpp"
#include "sql/postgres/cancel.hpp"
#include "sql/sqlite/connection.hpp"
#include "stores/mysql_fixture.hpp"
#include "support/matchers.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// Cancels until `run` has returned. A request that comes before the statement has begun is without effect, so one
/// alone could be too early.
template <class Cancel, class Run>
auto cancelled_while(Cancel cancel, Run run) {
    std::atomic<bool> is_over = false;
    std::jthread other([&] {
        while (!is_over) cancel();
    });
    auto result = run();
    is_over = true;
    return result;
}

TEST(SqlCancel, EndsAStatementOfPostgres) {
    const std::string url = postgres_url(shared_server_port("postgres"));
    const auto address = must(sql::postgres::Address::of(must(base::Url::parse(url))));
    const base::CallBudget budget(60s);
    const auto connection = must(sql::postgres::Connection::open(address, budget));
    const sql::postgres::Canceller canceller(*connection);
    const auto trip =
        cancelled_while([&] { must(canceller.cancel()); },
                        [&] { return connection->run(sql::postgres::Statement("SELECT pg_sleep(300)"), budget); });
    ASSERT_TRUE(trip.fault);
    EXPECT_EQ(trip.fault->error_class(), sql::ErrorClass::cancelled) << trip.fault->message;
    EXPECT_TRUE(connection->is_usable());
}

TEST(SqlCancel, EndsAStatementOfMysql) {
    const MysqlPlace place(shared_server_port("mysql"));
    base::Url url = must(base::Url::parse(place.database.url()));
    const auto address = must(sql::mysql::Address::of(url));
    const auto deadline = MysqlPlace::soon();
    auto connection = sql::mysql::Connection::open(address, address.endpoints.front(), host_clock(), deadline);
    ASSERT_TRUE(connection) << connection.error().text;
    const auto canceller =
        must(sql::mysql::Canceller::of(*connection, address, address.endpoints.front(), host_clock(), deadline));
    // Neither SLEEP() nor BENCHMARK(), which the server ends with a result instead of an error.
    const sql::mysql::Sql endless(
        "SELECT SUM(a.id ^ b.id ^ c.id ^ d.id ^ e.id) FROM information_schema.collations a, "
        "information_schema.collations b, information_schema.collations c, information_schema.collations d, "
        "information_schema.collations e");
    const auto answers =
        cancelled_while([&] { must(canceller.cancel(deadline)); }, [&] { return connection->run(endless, deadline); });
    ASSERT_FALSE(answers);
    EXPECT_EQ(answers.error().error_class(), sql::ErrorClass::cancelled) << answers.error().text;
    EXPECT_TRUE(connection->is_usable());
}

TEST(SqlCancel, EndsAStatementOfSqlite) {
    const TempFolder folder;
    const std::string file = (folder.path() / "a.db").string();
    std::ofstream(file).close();
    auto database = must(sql::sqlite::Database::open(file));
    const auto rows = cancelled_while([&] { database.cancel(); },
                                      [&] {
                                          return database.number(
                                              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                                              "SELECT count(*) FROM n");
                                      });
    ASSERT_FALSE(rows);
    EXPECT_EQ(sql::sqlite::error_class_of(sqlite3_extended_errcode(database.handle())), sql::ErrorClass::cancelled)
        << rows.error().message;
}

}  // namespace
}  // namespace holdfast::tests
