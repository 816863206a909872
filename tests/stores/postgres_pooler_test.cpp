// Goal: correct behind a transaction pooler, which gives every transaction another session. Method: a real PgBouncer
// with four sessions for all clients.
#include "stores/postgres_fixture.hpp"

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresPooler : public PostgresFixture {
protected:
    PostgresPooler()
        : server_(start_postgres_server({.arguments = {"-c", "log_statement=all"}})),
          pooler_(start_pgbouncer(*server_)) {}
    [[nodiscard]] std::string pooled_url(const std::string& parameters = "") const {
        return postgres_url(pooler_->port(), parameters);
    }
    const std::unique_ptr<Server> server_;
    const std::unique_ptr<Server> pooler_;
};

TEST_F(PostgresPooler, OneOfManyContendersHoldsTheLockAtATime) {
    std::atomic<int> inside = 0;
    std::atomic<int> grants = 0;
    std::atomic<int> doubles = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([&] {
                const auto store = must(open_store(pooled_url()));
                for (int round = 0; round < scaled(40); ++round) {
                    const Acquire mine = by("c", lock("x"), 1h);
                    const Reply reply = store->apply_one(mine, soon());
                    if (!reply) {
                        ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
                        continue;
                    }
                    if (inside.fetch_add(1) != 0) ++doubles;
                    EXPECT_THAT(store->apply_one(renewal(mine), soon()), Granted());
                    ++grants;
                    --inside;
                    EXPECT_THAT(store->apply_one(release(mine), soon()), Granted());
                }
            });
    }
    EXPECT_EQ(doubles, 0);
    EXPECT_GT(grants, 0);
    sound_lock(*must(open_store(pooled_url())), lock("x"), soon());
}

TEST_F(PostgresPooler, EventsOfManyLocksArePrunedAtOnce) {
    const auto store = must(open_store(pooled_url()));
    std::vector<Request> uses;
    std::vector<Request> prunes;
    for (int i = 0; i < 20; ++i) {
        const Acquire mine = by_alice(lock("p/" + std::to_string(i)));
        uses.insert(uses.end(), {mine, renewal(mine), release(mine)});
        prunes.emplace_back(Prune{mine.name, 2, "root"});
    }
    for (const auto& requests : {uses, prunes})
        for (const Reply& reply : must(store->apply(requests, soon()))) EXPECT_THAT(reply, Granted());
    for (const Request& prune : prunes) EXPECT_EQ(sound_lock(*store, name_of(prune), soon()).pruned_seq, 2U);
    EXPECT_EQ(must(store->history({}, soon())).size(), 2 * prunes.size());
}

TEST_F(PostgresPooler, WaitersGetTheirTurnByLooking) {
    const auto store = must(open_store(pooled_url()));
    const Acquire held = by_alice(lock("l"));
    must(store->apply_one(held, soon()));
    const Acquire wanted = queued(by_bob(lock("l")), 1min);
    const Reply refused = store->apply_one(wanted, soon());
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    std::jthread releaser([&] { EXPECT_THAT(store->apply_one(release(held), soon()), Granted()); });
    EXPECT_THAT(store->wait_for_change({lock("l"), refused.error().holder->seq, wanted.as.lock_id}, Deadline::never()),
                Granted());
    EXPECT_THAT(store->apply_one(wanted, soon()), Granted());
    std::ostringstream log;
    log << std::ifstream(server_->folder().path() / "server.log").rdbuf();
    EXPECT_THAT(log.str(), testing::HasSubstr("COMMIT"));
    EXPECT_THAT(log.str(), testing::Not(testing::HasSubstr("LISTEN")))
        << "a session that somebody else will get must not listen";
}

TEST_F(PostgresPooler, LeasesCannotBeBoundToASession) {
    EXPECT_THAT(open_store(pooled_url("session=on")), RefusedWith(Errc::store_unsafe));
    EXPECT_THAT(open_store(postgres_url(server_->port(), "session=on")), Granted());
}

// It answers the login itself, with a code of its own.
TEST_F(PostgresPooler, ALoginThatItRefusesIsDeniedAndNotAnAbsence) {
    const auto opened = [&](std::string_view user, std::string_view password) {
        return open_store(fmt::format("postgres://{}:{}@127.0.0.1:{}/postgres", user, password, pooler_->port()));
    };
    EXPECT_THAT(opened(server_user_name, "another"), RefusedWith(Errc::denied));
    EXPECT_THAT(opened("nobody", server_password), RefusedWith(Errc::denied));
    EXPECT_THAT(opened(server_user_name, server_password), Granted());
}

TEST_F(PostgresPooler, DoctorSaysThatOneIsThere) {
    const auto pooler_of = [](const std::string& url) {
        for (const Finding& finding : must(open_store(url))->examine(soon()))
            if (finding.name == "pooler") return finding.detail;
        return std::string();
    };
    EXPECT_THAT(pooler_of(pooled_url()), testing::HasSubstr("behind"));
    EXPECT_THAT(pooler_of(postgres_url(server_->port())), testing::HasSubstr("direct"));
}

}  // namespace
}  // namespace holdfast::tests
