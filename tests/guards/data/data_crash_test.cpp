// `holdfast data sync` when there are two, when a holder was paused, and when processes are killed.
#include "guards/data/data_fixture.hpp"
#include "guards/sql/data/sync.hpp"
#include "support/process_family.hpp"

#include <chrono>
#include <random>

namespace holdfast::tests {
namespace {

namespace data = guards::data;

class DataCrashTest : public DataFixture {
protected:
    /// `count` rows, each with the text `v`.
    static std::string many(int count, std::string_view v) {
        std::string text = "id,v\n";
        for (int i = 0; i < count; ++i) text += fmt::format("{},{}\n", i, v);
        return text;
    }
    /// `v*count` for each text that is there.
    std::string summary() {
        const auto session = place_.connect();
        const auto all =
            session->run({.text = "SELECT v, COUNT(*) FROM t GROUP BY v ORDER BY v", .values = {}}, Deadline::never());
        std::string text;
        for (const auto& row : all->rows)
            text += (text.empty() ? "" : " ") + row.at(0).value_or("NULL") + "*" + row.at(1).value_or("");
        return text;
    }
    [[nodiscard]] Result<guards::FencedSession> session_with(std::uint64_t token) const {
        guards::FencedSessionOptions options;
        options.connect = [this]() -> Result<std::unique_ptr<sql::Session>> { return place_.connect(); };
        options.claim = claim_with(token);
        options.clock = &host_clock();
        return guards::FencedSession::open(std::move(options));
    }
    [[nodiscard]] data::Source source(const std::string& folder, data::Strategy strategy) const {
        return must(data::Source::open((box_.work / folder).string(), {{"t", strategy, {}}}));
    }
};

TEST_P(DataCrashTest, OfTwoAtOnceEachWritesAllOfItsRows) {
    create_t();
    configure_t("mirror");
    file("t/a.csv", many(300, "a"), "data-a");
    file("t/b.csv", many(400, "b"), "data-b");
    for (int round = 0; round < scaled(2); ++round) {
        Running one = start_sync({"--data-dir", "data-a", "--wait", "1m"});
        Running other = start_sync({"--data-dir", "data-b", "--wait", "1m"});
        const Ended first = one.wait();
        const Ended second = other.wait();
        EXPECT_EQ(first.status, 0) << first.err;
        EXPECT_EQ(second.status, 0) << second.err;
        EXPECT_THAT(summary(), testing::AnyOf("a*300", "b*400"));
    }
}

/// The paused holder and its successor are in one process; what they have is what two processes would have.
TEST_P(DataCrashTest, APausedHolderThatGoesOnIsRefusedByTheFence) {
    create_t();
    file("t/a.csv", many(10, "old"), "data-old");
    file("t/a.csv", many(10, "new"), "data-new");
    for (const auto strategy : {data::Strategy::mirror, data::Strategy::truncate}) {
        const std::uint64_t token = strategy == data::Strategy::mirror ? 1 : 3;
        const data::Source old_files = source("data-old", strategy);
        const data::Source new_files = source("data-new", strategy);
        auto paused = must(session_with(token));
        bool taken_over = false;
        data::SyncOptions options{.digest = must(old_files.check())};
        options.progress = [&](const data::TableSource&, std::int64_t) {
            // A process that is stopped in a transaction keeps a SQLite file.
            if (taken_over || (is(SqlDialect::sqlite) && strategy == data::Strategy::truncate)) return;
            taken_over = true;
            auto successor = must(session_with(token + 1));
            const auto done = data::sync(successor, new_files, {.digest = must(new_files.check())});
            EXPECT_TRUE(done) << done.error().message;
        };
        const auto refused = data::sync(paused, old_files, options);
        if (!taken_over) continue;
        ASSERT_FALSE(refused) << data::name_of(strategy);
        EXPECT_EQ(refused.error().code, Errc::fencing_mismatch) << refused.error().message;
        EXPECT_EQ(summary(), "new*10");
    }
}

TEST_P(DataCrashTest, WithoutTheFenceAPausedHolderOverwritesItsSuccessor) {
    create_t();
    file("t/a.csv", many(10, "old"), "data-old");
    file("t/a.csv", many(10, "new"), "data-new");
    const data::Source old_files = source("data-old", data::Strategy::mirror);
    const data::Source new_files = source("data-new", data::Strategy::mirror);
    const auto unfenced = [&] {
        return must(guards::FencedSession::open(
            {.connect = [this]() -> Result<std::unique_ptr<sql::Session>> { return place_.connect(); },
             .clock = &host_clock()}));
    };
    auto paused = unfenced();
    bool taken_over = false;
    data::SyncOptions options{.digest = must(old_files.check())};
    options.progress = [&](const data::TableSource&, std::int64_t) {
        if (taken_over) return;
        taken_over = true;
        auto successor = unfenced();
        EXPECT_TRUE(data::sync(successor, new_files, {.digest = must(new_files.check())}));
    };
    EXPECT_TRUE(data::sync(paused, old_files, options));
    EXPECT_EQ(summary(), "old*10") << "which the fence prevents";
}

TEST_P(DataCrashTest, FilesThatChangeAfterTheyWereLookedAtAreNotWritten) {
    create_t();
    for (const auto strategy : {data::Strategy::mirror, data::Strategy::truncate}) {
        file("t/a.csv", many(10, "seen"));
        const data::Source files = source("data", strategy);
        const std::string digest = must(files.check());
        file("t/a.csv", many(10, "SEEN"));
        auto session = must(session_with(strategy == data::Strategy::mirror ? 5 : 6));
        const auto refused = data::sync(session, files, {.digest = digest});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Errc::data_invalid);
        EXPECT_THAT(refused.error().message, HasSubstr("changed while they were read"));
        EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
        EXPECT_TRUE(data::sync(session, files, {.digest = must(files.check())})) << "the session can be used again";
        run("DELETE FROM t");
        run("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')");
    }
}

TEST_P(DataCrashTest, KilledAtAnyPointAllRowsAreOldOrNew) {
    create_t();
    configure_t("truncate");
    std::string now = "v0*4000";
    file("t/a.csv", many(4000, "v0"));
    ASSERT_EQ(sync().status, 0);
    std::mt19937_64 random(seed_of("data kill"));
    std::uniform_int_distribution<int> delay(10, 150);
    for (int round = 1; round <= scaled(2); ++round) {
        configure_t(round % 2 == 0 ? "truncate" : "mirror");
        file("t/a.csv", many(4000, fmt::format("v{}", round)));
        Running victim = start_sync({"--ttl", "1s", "--wait", "30s"});
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{delay(random)};
        while (std::chrono::steady_clock::now() < until) cli_test::moment();
        signal_all(family_of(victim.pid()), SIGKILL);
        static_cast<void>(victim.wait());
        const std::string written = fmt::format("v{}*4000", round);
        // A server that was asked to commit before the client died may do it a moment later.
        const std::string left = summary();
        EXPECT_THAT(left, testing::AnyOf(now, written));
        now = left;
    }
    file("t/a.csv", many(4000, "last"));
    const Ended done = sync({"--wait", "30s", "--json"});
    ASSERT_EQ(done.status, 0) << done.err << done.out;
    EXPECT_EQ(summary(), "last*4000");
}

TEST_P(DataCrashTest, KilledInItsTransactionItLeavesTheOldRows) {
    // SQLite has no locks of rows that could stop it there.
    if (is(SqlDialect::sqlite)) return;
    create_t();
    configure_t("truncate");
    file("t/a.csv", many(10, "new"));
    const auto other = place_.connect();
    for (const char* text : {"START TRANSACTION", "UPDATE t SET v = v WHERE id = 3"})
        ASSERT_TRUE(other->run({.text = text, .values = {}}, Deadline::never()));
    Running victim = start_sync({"--ttl", "10s"});
    // It waits for the third row.
    const std::string waiting =
        is(SqlDialect::postgres)
            ? "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE FROM%'"
            : "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'DELETE "
              "FROM%'";
    ASSERT_TRUE(eventually([&] { return ask(waiting) != "0"; })) << victim.err();
    signal_all(family_of(victim.pid()), SIGKILL);
    static_cast<void>(victim.wait());
    ASSERT_TRUE(other->run({.text = "ROLLBACK", .values = {}}, Deadline::never()));
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
}

TEST_P(DataCrashTest, ASessionThatHasRowsLockedIsNamedAndWaitedFor) {
    if (is(SqlDialect::sqlite)) return;
    create_t();
    configure_t("mirror");
    file("t/a.csv", "id,v\n3,x\n");
    const auto other = place_.connect();
    for (const char* text : {"START TRANSACTION", "UPDATE t SET v = v WHERE id = 3"})
        ASSERT_TRUE(other->run({.text = text, .values = {}}, Deadline::never()));
    Running blocked = start_sync({"--ttl", "10s"});
    ASSERT_TRUE(eventually([&] { return blocked.err().find("in the way") != std::string::npos; })) << blocked.err();
    EXPECT_THAT(blocked.err(), HasSubstr(is(SqlDialect::postgres) ? "process " : "connection "));
    ASSERT_TRUE(other->run({.text = "COMMIT", .values = {}}, Deadline::never()));
    const Ended done = blocked.wait();
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(rows_of_t(), "3=x");
}

INSTANTIATE_TEST_SUITE_P(Databases, DataCrashTest, all_dialects(),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
