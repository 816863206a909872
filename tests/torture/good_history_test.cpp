// Goal: the checker accepts what the promise allows, above all calls whose outcome nobody knows; and it says so when a
// run proves nothing.
#include "report.hpp"
#include "story.hpp"

#include <gmock/gmock.h>

namespace torture {
namespace {

using testing::IsEmpty;

checker::Verdict judged(const Story& story) { return checker::judge(checker::parse(story.text())); }

std::vector<std::string> complaints(const Story& story) {
    std::vector<std::string> found;
    for (const checker::Violation& violation : judged(story).violations)
        found.push_back(violation.check + " " + violation.what);
    return found;
}

TEST(GoodHistory, OfTwoHoldersPasses) { EXPECT_THAT(complaints(two_holders()), IsEmpty()); }

TEST(GoodHistory, OfATheftPassesAndCountsTheStaleWrite) {
    EXPECT_THAT(complaints(theft()), IsEmpty());
    EXPECT_EQ(judged(theft()).counts.at("stale writes refused"), 1U);
}

TEST(GoodHistory, OfAnEndThatWasAnnouncedPasses) { EXPECT_THAT(complaints(announced()), IsEmpty()); }

TEST(GoodHistory, OfTwoSupervisorsPasses) {
    EXPECT_THAT(complaints(supervised()), IsEmpty());
    EXPECT_EQ(judged(supervised()).counts.at("leases with children"), 2U);
}

TEST(GoodHistory, ARepeatOfAGrantThatNobodyHeardOfAndTheStoreHasForgottenPasses) {
    Story story = two_holders();
    story.unheard("C.acquire", "c", 5, R"("op":"acquire","id":"C")");
    story.call("C.again", "c", 95, 96, R"("op":"acquire","id":"C")", R"("r":"ok","tok":300)");
    story.drop("1").drop("2").drop("3").drop("4").drop("5").drop("state");
    story.audit("0", 1, "acquired", "C", 50).audit("1", 2, "stolen", "A", 100, "C").audit("2", 3, "released", "A", 100);
    story.audit("3", 4, "acquired", "B", 200).audit("4", 5, "renewed", "B", 200).audit("5", 6, "released", "B", 200);
    story.audit("6", 7, "acquired", "C", 300).state(7, "C", 300);
    EXPECT_THAT(complaints(story), IsEmpty());
    EXPECT_EQ(judged(story).counts.at("grants repeated after the store had forgotten them"), 1U);
}

TEST(HandedOn, IsAGrantToTheWaiter) {
    Story story = two_holders();
    story.change("B.acquire", R"("op":"acquire","id":"B","ticket":3000)", R"("op":"handed","id":"B")");
    EXPECT_THAT(complaints(story), IsEmpty());
    EXPECT_EQ(judged(story).counts.at("grants"), 2U);
}

TEST(HandedOn, MayNeverBeHeardOf) {
    Story story = two_holders();
    story.call("C.wait", "c", 72, 73, R"("op":"acquire","id":"C","ticket":3000)",
               R"("r":"refused","why":"E_LOCK_CONFLICT")");
    story.audit("6", 6, "acquired", "C", 300).drop("state").state(6, "C", 300);
    EXPECT_THAT(complaints(story), IsEmpty());
    story.change("C.wait", R"(,"ticket":3000)", "");
    EXPECT_THAT(complaints(story), testing::SizeIs(1)) << "who has no place in line is handed nothing";
}

TEST(HandedOn, MayBeAskedForOnceMore) {
    Story story = two_holders();
    story.change("B.acquire.end", R"("tok":200)", R"("tok":200,"rs":1)")
        .change("B.renew.end", R"("rs":1)", R"("rs":2)");
    story.drop("5")
        .audit("5", 5, "renewed", "B", 200)
        .audit("6", 6, "released", "B", 200)
        .drop("state")
        .state(6, "", 200);
    EXPECT_THAT(complaints(story), IsEmpty());
}

TEST(UnknownOutcome, MayHaveHappened) {
    Story story = two_holders();
    story.change("B.renew.end", R"("ok")", R"("unknown")").change("B.write.end", R"("ok")", R"("unknown")");
    EXPECT_THAT(complaints(story.change("A.release.end", R"("ok")", R"("unknown")")), IsEmpty());
}

TEST(UnknownOutcome, MayNotHaveHappened) {
    Story story = two_holders();
    story.unheard("C.acquire", "c", 50, R"("op":"acquire","id":"C")");
    story.call("D.acquire", "d", 50, 60, R"("op":"acquire","id":"D")", R"("r":"unknown","why":"E_OUTCOME_UNKNOWN")");
    EXPECT_THAT(complaints(story.unheard("B.late", "b", 62, R"("op":"write","id":"B","tok":200,"n":2,"base":2)")),
                IsEmpty());
}

// The write left before the seal and arrived in time; that its caller gave up later proves nothing.
TEST(UnknownOutcome, IsNeverUsedAsCompletedBefore) {
    Story story = two_holders();
    story.change("A.write.end", R"("ok","v":1)", R"("unknown")").change("A.write.end", "26000000", "59000000");
    EXPECT_THAT(complaints(story), IsEmpty());
}

TEST(UnknownOutcome, IsResolvedByRepeating) {
    Story story = theft();
    story.change("B.acquire.end", R"("ok","tok":200)", R"("unknown")")
        .call("B.again", "b", 1012, 1014, R"("op":"acquire","id":"B")", R"("r":"ok","tok":200,"rs":1)")
        .audit("3", 3, "renewed", "B", 200)
        .change("state", R"("seq":2)", R"("seq":3)");
    EXPECT_THAT(complaints(story), IsEmpty());
}

Story taken_early(const std::string& kind) {
    return theft().change("A.believe", "900000000", "1200000000").fault(kind, "", 800, 810, 790);
}

TEST(Overlap, IsExcusedOnlyByTheClockOfTheStore) {
    EXPECT_THAT(complaints(taken_early("clock")), IsEmpty());
    EXPECT_EQ(judged(taken_early("clock")).counts.at("overlaps after the store's clock was moved"), 1U);
    EXPECT_THAT(complaints(taken_early("stop")), testing::SizeIs(1));
}

// The lease was granted before the clock was moved, and its answer came after somebody else had taken it.
TEST(Overlap, IsExcusedWhenTheClockWasMovedBeforeTheAnswerCame) {
    const Story late = theft()
                           .change("A.acquire.end", "20000000", "1050000000")
                           .change("A.believe", "20000000", "1050000000")
                           .change("A.believe", "900000000", "1200000000");
    EXPECT_THAT(complaints(Story(late).fault("clock", "", 500, 501)), IsEmpty());
    EXPECT_THAT(complaints(late), testing::SizeIs(1));
}

TEST(Overlap, OfChildrenIsExcusedOnlyByTheClockOfTheStore) {
    const Story together = supervised().change("A.life.end", "800000000", "860000000");
    EXPECT_THAT(complaints(Story(together).fault("clock", "", 600, 601)), IsEmpty());
    EXPECT_THAT(complaints(Story(together).fault("supervisor_stop", "a", 600, 1200)), testing::SizeIs(1));
}

TEST(Overlap, WithTheDeadIsNone) {
    EXPECT_THAT(complaints(theft().change("A.believe", "900000000", "1200000000").fault("kill", "a", 800, 810)),
                IsEmpty());
    EXPECT_THAT(complaints(theft().change("A.believe", "900000000", "1200000000").fault("kill", "c", 800, 810)),
                testing::SizeIs(1));
}

TEST(Overlap, AfterABreakIsCountedAndAllowed) {
    Story story = theft();
    story.change("A.believe", "900000000", "1200000000")
        .call("break", "o", 500, 510, R"("op":"break","id":"A","tok":100)", R"("r":"ok","tok":150)")
        .drop("2")
        .audit("broken", 2, "broken", "A", 150, "A")
        .audit("2", 3, "acquired", "B", 200)
        .change("state", R"("seq":2)", R"("seq":3)");
    EXPECT_THAT(complaints(story), IsEmpty());
    EXPECT_EQ(judged(story).counts.at("overlaps after a break"), 1U);
}

TEST(Queue, DoesNotKeepAPlaceForAWaiterThatStayedAwayTooLong) {
    EXPECT_THAT(complaints(overtaken().change("B.wait", R"("ticket":3000)", R"("ticket":10)")), IsEmpty());
}

TEST(Restore, MayUndoWhatCameAfterTheCopy) {
    Story story;
    story.call("A.acquire", "a", 10, 20, R"("op":"acquire","id":"A")", R"("r":"ok","tok":300)")
        .fault("restore", "", 30, 40, 5)
        .call("B.acquire", "b", 50, 60, R"("op":"acquire","id":"B")", R"("r":"ok","tok":400)")
        .audit("1", 1, "acquired", "B", 400)
        .state(1, "B", 400);
    EXPECT_THAT(complaints(story), IsEmpty());
    EXPECT_EQ(judged(story).bitten.at("restore"), 1U);
}

/// The run, with a fault that it had to contain.
checker::Verdict requiring(const std::string& kind, const Story& story) {
    std::string text = story.text();
    const std::string none = R"("require":[])";
    text.replace(text.find(none), none.size(), R"("require":[")" + kind + R"("])");
    return checker::judge(checker::parse(text));
}

TEST(Bite, OfARequiredFaultIsDemanded) {
    EXPECT_EQ(checker::exit_status_of(requiring("kill", two_holders())), 3);
    EXPECT_EQ(checker::exit_status_of(requiring("kill", two_holders().fault("kill", "a", 5, 5))), 3) << "it met nobody";
    EXPECT_EQ(checker::exit_status_of(requiring("kill", two_holders().fault("kill", "a", 28, 28))), 0);
}

TEST(Bite, OfAPauseIsALeaseThatRanOut) {
    EXPECT_EQ(checker::exit_status_of(requiring("stop", theft().fault("stop", "a", 500, 800))), 3);
    EXPECT_EQ(checker::exit_status_of(requiring("stop", theft().fault("stop", "a", 500, 1050))), 0);
    EXPECT_EQ(checker::exit_status_of(requiring("stale", theft())), 0);
}

TEST(Bite, OfASupervisorIsACommandThatWasEnded) {
    Story story = supervised();
    story.fault("supervisor_kill", "a", 400, 410);
    EXPECT_EQ(checker::exit_status_of(requiring("supervisor_kill", story)), 3) << "it ended by itself";
    story.drop("A.life.end");
    EXPECT_EQ(checker::exit_status_of(requiring("supervisor_kill", story)), 0);
    EXPECT_EQ(
        checker::exit_status_of(requiring("supervisor_stop", supervised().fault("supervisor_stop", "a", 20, 900))), 3)
        << "it had no command yet";
}

TEST(Bite, OfAServerIsACallWithoutAnAnswer) {
    Story story = two_holders();
    story.fault("server_kill", "", 35, 38);
    EXPECT_EQ(checker::exit_status_of(requiring("server_kill", story)), 3);
    story.call("C.acquire", "c", 36, 39, R"("op":"acquire","id":"C")", R"("r":"refused","why":"E_STORE_UNAVAILABLE")");
    EXPECT_EQ(checker::exit_status_of(requiring("server_kill", story)), 0);
}

TEST(Bite, OfADelayIsAnAnswerThatCameLate) {
    Story story = two_holders();
    story.add("fault", R"("e":"fault","kind":"delay","t":42000000,"t1":90000000,"ms":6)");
    EXPECT_EQ(checker::exit_status_of(requiring("delay", story)), 3);
    story.call("C.acquire", "c", 46, 58, R"("op":"acquire","id":"C")", R"("r":"refused","why":"E_LOCK_CONFLICT")");
    EXPECT_EQ(checker::exit_status_of(requiring("delay", story)), 0);
}

TEST(Bite, OfANodeIsACallThatItHeldUp) {
    Story story = two_holders();
    story.fault("leader_stop", "", 35, 300);
    EXPECT_EQ(checker::exit_status_of(requiring("leader_stop", story)), 3);
    story.call("C.acquire", "c", 46, 250, R"("op":"acquire","id":"C")", R"("r":"refused","why":"E_LOCK_CONFLICT")");
    EXPECT_EQ(checker::exit_status_of(requiring("leader_stop", story)), 0);
}

TEST(Control, MustLoseUpdatesAndNothingElse) {
    const auto control = [](const Story& story) {
        std::string text = story.text();
        text.replace(text.find("[]"), 2, R"([],"control":true)");
        return checker::exit_status_of(checker::judge(checker::parse(text)));
    };
    EXPECT_EQ(control(two_holders()), 3) << "nothing was lost, so nothing was shown";
    EXPECT_EQ(control(two_holders().change("v2", R"("base":1)", R"("base":0)")), 0);
    EXPECT_EQ(control(two_holders().change("v2", R"("base":1)", R"("base":0)").drop("5")), 1);
}

TEST(Report, ShowsTheFirstPairItsSurroundingsAndTheSeed) {
    const checker::History history = checker::parse(two_holders().change("v2", R"("base":1)", R"("base":0)").text());
    const checker::Verdict verdict = checker::judge(history);
    const std::string report = checker::report_on(history, verdict);
    EXPECT_THAT(report, testing::HasSubstr("seed 7"));
    EXPECT_THAT(report, testing::ContainsRegex(R"re(> +[0-9]+ .*"v":2,"id":"B")re"));
    EXPECT_THAT(report, testing::HasSubstr("50.0 % of the acknowledged writes were lost"));
    EXPECT_EQ(checker::exit_status_of(verdict), 1);
}

TEST(Parsing, RefusesHalfAHistory) {
    EXPECT_ANY_THROW((void)checker::parse(two_holders().text() + R"({"e":"begin","p":"a")"));
    EXPECT_ANY_THROW((void)checker::parse(R"({"e":"end","p":"a","i":1,"t":5,"r":"ok"})"));
    EXPECT_ANY_THROW((void)checker::parse(two_holders().text() + R"({"e":"something"})"));
}

}  // namespace
}  // namespace torture
