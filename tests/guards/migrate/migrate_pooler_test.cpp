// `holdfast migrate` behind a pooler that gives each transaction any session of the server: what one user sets there,
// the next one finds.
#include "cli/sandbox.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using cli_test::Args;
using cli_test::Ended;
using testing::HasSubstr;

class MigrateBehindAPooler : public testing::Test {
protected:
    MigrateBehindAPooler() { file("0001_users.sql", "CREATE TABLE users (id INT PRIMARY KEY);"); }

    void file(const std::string& name, std::string_view text) const {
        box_.write(box_.work / "migrations" / name, text);
    }
    Ended up(std::uint16_t port, const Args& more = {}) {
        Args args{"migrate", "up", "--yes", "--json", "--database", postgres_url(port)};
        args.insert(args.end(), more.begin(), more.end());
        return box_.run(args);
    }

    std::unique_ptr<Server> server_ = start_postgres_server({});
    std::unique_ptr<Server> pooler_ = start_pgbouncer(*server_);
    cli_test::Sandbox box_;
};

TEST_F(MigrateBehindAPooler, NoSchemaIsChosen) {
    EXPECT_EQ(up(pooler_->port(), {"--schema", "public"}).code(), "E_STORE_UNSAFE");
    const Ended direct = up(server_->port(), {"--schema", "public"});
    EXPECT_EQ(direct.status, 0) << direct.out;
}

TEST_F(MigrateBehindAPooler, AFileLeavesNoSettingToTheNextUser) {
    ByHand direct(server_->port());
    direct("ALTER ROLE CURRENT_USER SET search_path = public");
    const Ended plain = up(pooler_->port());
    EXPECT_EQ(plain.status, 0) << plain.out;
    direct("CREATE SCHEMA elsewhere");
    for (const char* text : {"SET search_path = elsewhere;", "SET SESSION statement_timeout = 1;", "RESET ALL;",
                             "SELECT pg_catalog.set_config('search_path', 'elsewhere', false);",
                             "CREATE TEMP TABLE scratch (n INT);", "LISTEN news;", "SET ROLE pg_monitor;"}) {
        file("0002_setting.sql", std::string(text) + "\nCREATE TABLE elsewhere.b (n INT);");
        const Ended refused = up(pooler_->port());
        EXPECT_EQ(refused.code(), "E_MIGRATION_FAILED") << text << refused.out;
        EXPECT_THAT(refused.out, HasSubstr("0002_setting.sql:1")) << text;
        EXPECT_EQ(direct("SELECT to_regclass('elsewhere.b')"), "") << text;
    }
    file("0002_setting.sql",
         "SET LOCAL search_path = elsewhere;\nSELECT set_config('search_path', 'elsewhere', true);\nCREATE TEMP TABLE "
         "scratch (n INT) ON COMMIT DROP;\nCREATE TABLE b (n INT);");
    const Ended done = up(pooler_->port());
    EXPECT_EQ(done.status, 0) << done.out;
    EXPECT_EQ(direct("SELECT to_regclass('elsewhere.b')"), "elsewhere.b");
}

// A user with the name of the schema of the locks would find its own tables there.
TEST_F(MigrateBehindAPooler, TheSchemaOfTheLocksIsNotLeftInASessionOfOthers) {
    // It makes the schema of the locks.
    ASSERT_EQ(up(server_->port()).status, 0);
    file("0002_log.sql", "CREATE TABLE log (n INT);");
    const Ended refused = up(pooler_->port());
    EXPECT_EQ(refused.code(), "E_STORE_UNSAFE") << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("ALTER ROLE"));
    EXPECT_EQ(ByHand(pooler_->port())("SHOW search_path"), "\"$user\", public");
}

}  // namespace
}  // namespace holdfast::tests
