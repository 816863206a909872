// Goal: a user that is not the server's administrator can neither answer in the server's place nor run code as the user
// of the store. Method: a real server; services, addresses and search paths as users and administrators set them.
#include "stores/postgres/config.hpp"
#include "stores/postgres_fixture.hpp"
#include "support/variable.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

std::string sslmode_of(const std::string& url) {
    auto settings = must(stores::postgres::settings_of(must(base::Url::parse(url))));
    const auto found = settings.options.find("sslmode");
    return found == settings.options.end() ? "as libpq likes" : found->second;
}

TEST(PostgresAddress, OnlyAServerOfThisHostNeedsNoCertificate) {
    for (const char* here : {"postgres://127.0.0.1/a", "postgres://127.1.2.3/a", "postgres://[::1]/a", "postgres:///a",
                             "postgres://localhost/a", "postgres://%2Frun%2Fpostgresql/a"})
        EXPECT_EQ(sslmode_of(here), "as libpq likes") << here;
    for (const char* elsewhere :
         {"postgres://192.0.2.1/a", "postgres://127.db.example/a", "postgres://localhost/a?hostaddr=192.0.2.1",
          "postgres://127.0.0.1,192.0.2.1/a", "postgres:///a?service=prod", "postgres://localhost/a?service=prod"})
        EXPECT_EQ(sslmode_of(elsewhere), "verify-full") << elsewhere;
    EXPECT_EQ(sslmode_of("postgres:///a?service=prod&sslmode=require"), "require") << "the user's choice";
    const Variable chosen("PGSSLMODE", "verify-ca");
    EXPECT_EQ(sslmode_of("postgres:///a?service=prod"), "verify-ca") << "the service's file may say less";
}

TEST(PostgresAddress, OfTheEnvironmentCountsLikeThatOfTheUrl) {
    for (const char* name : {"PGHOST", "PGHOSTADDR", "PGSERVICE"}) {
        const Variable elsewhere(name, "192.0.2.1");
        EXPECT_EQ(sslmode_of("postgres:///a"), "verify-full") << name;
    }
}

class PostgresTrust : public PostgresFixture {};

TEST_F(PostgresTrust, AServiceThatNamesAHostElsewhereMustProveWhoItIs) {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / (schema_ + ".conf");
    std::ofstream(file) << fmt::format(
        "[prod]\nhost=db.example.invalid\nhostaddr=127.0.0.1\nport={}\nuser={}\npassword={}\ndbname=postgres\n", port_,
        server_user_name, server_password);
    const Variable services("PGSERVICEFILE", file.string());
    const std::string by_service = "postgres:///?service=prod&schema=" + schema_;
    EXPECT_THAT(open_store(by_service + "&sslmode=prefer"), Granted());
    EXPECT_THAT(open_store(by_service), RefusedWith(Errc::store_unavailable)) << "the server has no certificate";
    std::filesystem::remove(file);
}

/// A schema in which another user has put a clock of his own, one hour ahead.
class PostgresSearchPath : public PostgresFixture {
protected:
    PostgresSearchPath() {
        by_hand_("CREATE SCHEMA " + planted_);
        by_hand_("CREATE FUNCTION " + planted_ +
                 ".clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
                 "$$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$");
    }
    ~PostgresSearchPath() override { by_hand_("DROP SCHEMA " + planted_ + " CASCADE"); }

    const std::string planted_ = schema_ + "_planted";
};

TEST_F(PostgresSearchPath, AFunctionOfAnotherUserIsNotCalledInPlaceOfTheServers) {
    const auto store = open("options=-csearch_path%3D" + planted_ + ",pg_catalog");
    const Reply granted = store->apply_one(by("alice", lock("x"), 10s), soon());
    ASSERT_THAT(granted, Granted());
    const LockStatus status = must(store->inspect(lock("x"), soon()));
    EXPECT_LT(status.lease->expires_at, host_clock().wall() + 30min) << "the planted clock judged";
}

TEST_F(PostgresSearchPath, BehindAPoolerNeither) {
    const auto server = start_postgres_server({});
    const auto pooler = start_pgbouncer(*server);
    ByHand by_hand(server->port());
    by_hand("CREATE SCHEMA " + planted_);
    by_hand("CREATE FUNCTION " + planted_ +
            ".clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
            "$$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$");
    by_hand("ALTER DATABASE postgres SET search_path = " + planted_ + ", pg_catalog");
    const auto store = must(open_store(postgres_url(pooler->port())));
    ASSERT_THAT(store->apply_one(by("alice", lock("x"), 10s), soon()), Granted());
    const LockStatus status = must(store->inspect(lock("x"), soon()));
    EXPECT_LT(status.lease->expires_at, host_clock().wall() + 30min) << "the planted clock judged";
}

}  // namespace
}  // namespace holdfast::tests
