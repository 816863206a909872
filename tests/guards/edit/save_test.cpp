// Goal: whatever is paused or comes late, the database has only what the screen wrote that edits, and nothing between
// the steps of a propagation. Method: the same tests on a SQLite file, PostgreSQL and MariaDB, each with a store of its
// own.
#include "client/faulty_store.hpp"
#include "guards/edit/edit_fixture.hpp"
#include "guards/sql/protected_place.hpp"

#include <fmt/format.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

EditWrite writes(const std::string& text) {
    return [text](FencedDatabase& database) -> Result<void> {
        const auto done = database.run("UPDATE page SET text = $1", {text});
        if (!done) return std::unexpected(done.error());
        return {};
    };
}

class SaveTest : public EditFixture, public testing::WithParamInterface<SqlDialect> {
protected:
    SaveTest() : place_(GetParam()) {
        place_("CREATE TABLE page (text VARCHAR(100))");
        place_("INSERT INTO page VALUES ('empty')");
    }

    [[nodiscard]] Result<FencedDatabase> seal(const EditGrant& grant) {
        return guard_.seal(locks_, grant.lock.token, grant.as.lock_id, place_.url(), soon());
    }
    [[nodiscard]] Result<void> save(FencedDatabase& database, const std::string& text) {
        return guard_.save(database, locks_, writes(text), soon());
    }
    /// Whether a transaction keeps others from sealing now. Does not wait for it.
    [[nodiscard]] bool is_kept() {
        const auto other = place_.connect();
        const bool is_file = GetParam() == SqlDialect::sqlite;
        const std::string taking = is_file ? "BEGIN IMMEDIATE" : "SELECT token FROM holdfast_fence FOR UPDATE NOWAIT";
        return !other->run({.text = taking}, Deadline::in(host_clock(), 50ms));
    }
    [[nodiscard]] std::string text() { return place_("SELECT text FROM page"); }
    [[nodiscard]] EditGrant stolen_from_ana() {
        clock_.advance(11min);
        return must(guard_.take_over(locks_, look(), Credentials::random(), {"b", "2", "ben"}, "", soon()));
    }

    ProtectedPlace place_;
};

TEST_P(SaveTest, TheScreenThatEditsSaves) {
    auto database = must(seal(must(open("a", "ana"))));
    EXPECT_THAT(save(database, "one"), Granted());
    EXPECT_THAT(save(database, "two"), Granted());
    EXPECT_EQ(text(), "two");
}

TEST_P(SaveTest, ASaveWithAStaleTokenIsRefusedByTheDatabaseAndTheLogHasIt) {
    auto database = must(seal(must(open("a", "ana"))));
    const auto ben = stolen_from_ana();
    auto newest = must(seal(ben));
    // Whatever the store may say: the row in the database belongs to somebody else.
    EXPECT_THAT(database.begin(), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(save(database, "late"), RefusedWith(Errc::fencing_mismatch));
    EXPECT_EQ(text(), "empty");
    EXPECT_THAT(save(newest, "ben's"), Granted());
    EXPECT_EQ(text(), "ben's");
    EXPECT_EQ(must(store_->history({.name = locks_.edit}, soon())).back().kind, EventKind::fenced);
}

// The new screen has not come to its server yet, so the row still is the former one's.
TEST_P(SaveTest, ASaveIsRefusedBetweenATakeOverAndItsSeal) {
    auto database = must(seal(must(open("a", "ana"))));
    const auto ben = stolen_from_ana();
    EXPECT_THAT(save(database, "late"), RefusedWith(Errc::fencing_mismatch));
    EXPECT_EQ(text(), "empty");
}

TEST_P(SaveTest, ASaveAfterTheSessionRanOutIsRefused) {
    auto database = must(seal(must(open("a", "ana"))));
    clock_.advance(30min);
    EXPECT_THAT(save(database, "late"), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(text(), "empty");
}

// Asked before it, the answer could be old when the transaction begins: a propagation could write in between.
TEST_P(SaveTest, TheStoreIsAskedInsideTheTransactionThatWrites) {
    FaultyStore line(*store_);
    EditGuard guard(line);
    const auto ana = must(open("a", "ana"));
    auto database = must(guard.seal(locks_, ana.lock.token, ana.as.lock_id, place_.url(), soon()));
    int answers = 0;
    line.before_answers([&] {
        ++answers;
        EXPECT_TRUE(is_kept());
    });
    EXPECT_THAT(guard.save(database, locks_, writes("new"), soon()), Granted());
    EXPECT_EQ(answers, 1);
    EXPECT_FALSE(is_kept());
    EXPECT_EQ(text(), "new");
}

TEST_P(SaveTest, AMadeUpTokenSealsNothing) {
    const auto ana = must(open("a", "ana"));
    auto database = must(seal(ana));
    const FencingToken huge{FencingToken::limit - 1};
    EXPECT_THAT(guard_.seal(locks_, huge, ana.as.lock_id, place_.url(), soon()), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(guard_.seal(locks_, ana.lock.token, LockId::random(), place_.url(), soon()),
                RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(save(database, "mine"), Granted());
}

TEST_P(SaveTest, AWriteThatFailsIsRolledBack) {
    auto database = must(seal(must(open("a", "ana"))));
    const auto failed = guard_.save(
        database, locks_,
        [](FencedDatabase& inside) -> Result<void> {
            if (auto done = writes("half")(inside); !done) return done;
            return fail(Errc::data_invalid, "the other half is missing");
        },
        soon());
    EXPECT_THAT(failed, RefusedWith(Errc::data_invalid));
    EXPECT_EQ(text(), "empty");
    EXPECT_THAT(save(database, "whole"), Granted());
}

TEST_P(SaveTest, NobodySavesOrBeginsToEditWhileAPropagationRuns) {
    const auto ana = must(open("a", "ana"));
    auto database = must(seal(ana));
    auto propagation = must(guard_.propagate(locks_, {"job 1", "ana"}, place_.url()));
    const auto refused = save(database, "between");
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(refused.error().holder->name, locks_.propagation);
    EXPECT_THAT(guard_.propagate(locks_, {"job 2", "ben"}, place_.url()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(propagation.step(writes("propagated")), Granted());
    EXPECT_THAT(guard_.close(locks_, ana.as, soon()), Granted());
    EXPECT_THAT(open("b", "ben"), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(propagation.finish(), Granted());
    EXPECT_EQ(text(), "propagated");

    auto next = must(seal(must(open("b", "ben"))));
    EXPECT_THAT(save(next, "after"), Granted());
}

TEST_P(SaveTest, APropagationWaitsForASaveThatHadBegun) {
    auto database = must(seal(must(open("a", "ana"))));
    std::string seen;
    std::jthread job;
    const auto saved = guard_.save(
        database, locks_,
        [&](FencedDatabase& inside) -> Result<void> {
            job = std::jthread([&] {
                auto propagation = must(guard_.propagate(locks_, {"job", ""}, place_.url()));
                EXPECT_THAT(propagation.step([&](FencedDatabase& reading) -> Result<void> {
                    seen = must(reading.run("SELECT text FROM page")).rows.at(0).at(0).value_or("");
                    return {};
                }),
                            Granted());
            });
            // The job has the lock from here on, and still must not read what this save has not finished.
            while (must(store_->inspect(locks_.propagation, soon())).state != LockState::held)
                std::this_thread::yield();
            return writes("saved in time")(inside);
        },
        soon());
    job.join();
    EXPECT_THAT(saved, Granted());
    EXPECT_EQ(seen, "saved in time");
}

TEST_P(SaveTest, APropagationThatRanOutWritesNothingMore) {
    auto database = must(seal(must(open("a", "ana"))));
    auto propagation = must(guard_.propagate(locks_, {"job", "ana"}, place_.url()));
    EXPECT_THAT(propagation.step(writes("first step")), Granted());
    clock_.advance(60s);
    EXPECT_THAT(save(database, "saved between"), Granted());
    EXPECT_FALSE(propagation.step(writes("second step")));
    EXPECT_THAT(propagation.finish(), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(text(), "saved between");
}

INSTANTIATE_TEST_SUITE_P(Databases, SaveTest,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
