// Goal: an attempt is repeated only where that is safe, and what may have been committed never becomes a refusal.
// Method: attempts whose results the test lists.
#include "stores/common/attempt.hpp"

#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <deque>

namespace holdfast::stores {
namespace {

using Kind = AttemptError::Kind;

const Error refused{Errc::store_unavailable, "no"};
const Error unknown{Errc::outcome_unknown, "nobody knows"};

AttemptResult failed(Kind kind) { return std::unexpected(AttemptError{kind, refused}); }

AttemptResult in_doubt() {
    AttemptError error{Kind::in_doubt, unknown};
    error.doubt = std::make_shared<const InDoubt>(InDoubt{tests::lock("x"), 1, {}, {}, unknown});
    return std::unexpected(std::move(error));
}

AttemptResult granted() { return std::vector<Reply>{Outcome{LockStatus{tests::lock("x")}}}; }
AttemptResult conflicted() { return std::vector<Reply>{fail(Errc::lock_conflict, "somebody has it")}; }

/// Gives these results one after the other, and the last one for ever.
struct Script {
    std::deque<AttemptResult> results;
    std::vector<AttemptTerms> terms{};
    int over_after = 1000;

    AttemptResult run() {
        return apply_with_retries(
            [&](const AttemptTerms& given) {
                terms.push_back(given);
                AttemptResult result = results.front();
                if (results.size() > 1) results.pop_front();
                return result;
            },
            [&] { return static_cast<int>(terms.size()) >= over_after; });
    }
};

TEST(Retries, EndWithTheFirstReplies) {
    Script script{{failed(Kind::conflict), failed(Kind::prepared), failed(Kind::connection_lost), granted()}};
    EXPECT_TRUE(script.run());
    ASSERT_EQ(script.terms.size(), 4U);
    EXPECT_FALSE(script.terms[2].wants_fresh_connection);
    EXPECT_TRUE(script.terms[3].wants_fresh_connection);
}

TEST(Retries, EndAtOnceWhereRepeatingCannotHelp) {
    for (const Kind kind : {Kind::final, Kind::locks_busy, Kind::one_spoils_all}) {
        Script script{{failed(kind), granted()}};
        const AttemptResult result = script.run();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind, kind);
        EXPECT_EQ(script.terms.size(), 1U);
    }
}

TEST(Retries, AreBounded) {
    const std::vector<std::pair<Kind, std::size_t>> most{
        {Kind::conflict, 6}, {Kind::prepared, 11}, {Kind::connection_lost, 2}};
    for (const auto& [kind, attempts] : most) {
        Script script{{failed(kind)}};
        EXPECT_FALSE(script.run());
        EXPECT_EQ(script.terms.size(), attempts);
    }
}

TEST(Retries, EndWhenTheTimeIsOver) {
    for (const Kind kind : {Kind::conflict, Kind::prepared, Kind::connection_lost}) {
        Script script{.results = {failed(kind), granted()}, .over_after = 1};
        EXPECT_FALSE(script.run());
        EXPECT_EQ(script.terms.size(), 1U);
    }
}

TEST(Retries, ShowTheNextAttemptWhatIsInDoubt) {
    Script script{{in_doubt(), granted()}};
    EXPECT_TRUE(script.run());
    ASSERT_EQ(script.terms.size(), 2U);
    EXPECT_FALSE(script.terms[0].doubt);
    EXPECT_TRUE(script.terms[1].doubt);
    EXPECT_TRUE(script.terms[1].wants_fresh_connection);
}

// A refusal changes nothing, so the batch in doubt may still arrive after it.
TEST(Retries, OfABatchInDoubtAreNeverRefused) {
    std::vector<AttemptResult> later{conflicted(), in_doubt()};
    for (const Kind kind :
         {Kind::final, Kind::conflict, Kind::prepared, Kind::connection_lost, Kind::locks_busy, Kind::one_spoils_all})
        later.push_back(failed(kind));
    for (const AttemptResult& result : later) {
        Script script{{in_doubt(), result}};
        const AttemptResult end = script.run();
        ASSERT_FALSE(end);
        EXPECT_EQ(end.error().error.code, Errc::outcome_unknown);
        EXPECT_EQ(end.error().kind, Kind::final);
    }
}

TEST(Retries, WithoutTimeLeaveADoubtUnknown) {
    Script script{.results = {in_doubt(), granted()}, .over_after = 1};
    const AttemptResult end = script.run();
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().error.code, Errc::outcome_unknown);
}

TEST(InDoubt, IsJudgedByTheLastEventOfTheLock) {
    using Verdict = InDoubt::Verdict;
    Digest ours{};
    Digest others{};
    others[0] = 1;
    const InDoubt doubt{tests::lock("x"), 7, ours, {}, unknown};
    EXPECT_EQ(doubt.judge(6, others), Verdict::not_committed);
    EXPECT_EQ(doubt.judge(6, ours), Verdict::not_committed);
    EXPECT_EQ(doubt.judge(7, ours), Verdict::committed);
    EXPECT_EQ(doubt.judge(7, others), Verdict::unknowable);
    EXPECT_EQ(doubt.judge(8, others), Verdict::unknowable);
}

}  // namespace
}  // namespace holdfast::stores
