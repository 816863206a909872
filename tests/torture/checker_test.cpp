// Goal: the checker sees what is wrong, says which promise it breaks, and does not cry wolf. Method: histories made by
// hand, each with one thing wrong, and good ones that look suspicious.
#include "report.hpp"
#include "story.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

namespace torture {
namespace {

struct Case {
    std::string name;
    std::string check;  ///< The one that must see it.
    Story story;
};

void PrintTo(const Case& bad, std::ostream* out) { *out << bad.name; }

std::set<std::string> checks_that_see(const Story& story) {
    std::set<std::string> checks;
    for (const checker::Violation& violation : checker::judge(checker::parse(story.text())).violations)
        checks.insert(violation.check);
    return checks;
}

Story restored(int token_after) {
    Story story;
    story.call("A.acquire", "a", 10, 20, R"("op":"acquire","id":"A")", R"("r":"ok","tok":300)")
        .fault("restore", "", 30, 40, 5)
        .call("B.acquire", "b", 50, 60, R"("op":"acquire","id":"B")", fmt::format(R"("r":"ok","tok":{})", token_after))
        .audit("1", 1, "acquired", "B", token_after)
        .state(1, "B", token_after);
    return story;
}

Story broken() {
    return theft()
        .drop("A.write")
        .drop("A.write.end")
        .call("break", "o", 500, 510, R"("op":"break","id":"A","tok":100)", R"("r":"ok","tok":150)")
        .change("2", R"("seq":2,"kind":"stolen")", R"("seq":3,"kind":"acquired")")
        .change("2", R"("from":"A")", R"("from":"")")
        .drop("1")
        .drop("2")
        .audit("1", 1, "acquired", "A", 100)
        .audit("broken", 2, "broken", "A", 150, "A")
        .audit("2", 3, "acquired", "B", 200)
        .change("state", R"("seq":2)", R"("seq":3)");
}

std::vector<Case> tokens() {
    return {
        {"AStealThatKeepsTheToken", "C1",
         theft()
             .change("B.acquire.end", "200", "100")
             .change("B.believe", "200", "100")
             .change("B.seal", "200", "100")
             .change("2", "200", "100")
             .change("state", "200", "100")},
        {"ATokenIssuedAgainAfterARestore", "C1", restored(300)},
        {"ATokenThatBeginsAgainAfterRelease", "C2",
         two_holders()
             .drop("B.write")
             .drop("B.write.end")
             .drop("v2")
             .change("B.acquire.end", "200", "50")
             .change("B.renew", R"("tok":200)", R"("tok":100)")
             .change("3", "200", "50")
             .change("4", "200", "50")
             .change("5", "200", "50")
             .change("state", "200", "50")},
        {"ALowerTokenAfterARestore", "C2", restored(200)},
        {"ABreakThatSpendsNoToken", "C2", broken().change("broken", "150", "100")},
        {"ARenewalBegunAfterANewerGrant", "C8",
         theft()
             .call("A.renew", "a", 1050, 1060, R"("op":"renew","id":"A","tok":100)", R"("r":"ok","rs":1)")
             .drop("2")
             .audit("renewed", 2, "renewed", "A", 100)
             .audit("2", 3, "stolen", "B", 200, "A")
             .change("state", R"("seq":2)", R"("seq":3)")},
        {"ARenewalThatIsNotCounted", "C8", two_holders().change("B.renew.end", R"("rs":1)", R"("rs":0)")},
    };
}

std::vector<Case> beliefs() {
    return {
        {"AStealBeforeTheHolderStoppedBelieving", "C3", theft().change("A.believe", "900000000", "1200000000")},
        {"ADeadlineCountedFromTheAnswer", "C3", theft().change("A.believe", "900000000", "1011000000")},
        {"ALossHeardTooLate", "C3",
         theft()
             .change("A.believe", "900000000", "1200000000")
             .add("lost", R"("e":"lost","p":"a","l":"L","id":"A","tok":100,"t":1015000000)")},
    };
}

std::vector<Case> audits() {
    Story reported_refused = two_holders();
    reported_refused.drop("A.seal")
        .drop("A.seal.end")
        .drop("A.read")
        .drop("A.read.end")
        .drop("A.write")
        .drop("A.write.end");
    reported_refused.drop("v1").drop("v2").drop("B.write").drop("B.write.end").drop("B.read").drop("B.read.end");
    Story forgotten = reported_refused;
    reported_refused.drop("A.believe").change("A.acquire.end", R"("ok")", R"("refused")");
    forgotten.drop("1").drop("2").change("3", R"("seq":3)", R"("seq":1)").change("4", R"("seq":4)", R"("seq":2)");
    forgotten.change("5", R"("seq":5)", R"("seq":3)").change("state", R"("seq":5)", R"("seq":3)");
    return {
        {"AnAcknowledgedGrantThatIsGone", "C4", forgotten},
        {"AGrantReportedAsRefused", "C4", reported_refused},
        {"AGrantThatNobodyAskedFor", "C4",
         theft().drop("B.acquire").drop("B.acquire.end").drop("B.believe").drop("B.seal").drop("B.seal.end")},
        {"AnEventThatIsMissing", "C4",
         two_holders().change("5", R"("seq":5)", R"("seq":6)").change("state", R"("seq":5)", R"("seq":6)")},
        {"ARenewalOutsideTheAudit", "C4",
         two_holders().drop("4").change("5", R"("seq":5)", R"("seq":4)").change("state", R"("seq":5)", R"("seq":4)")},
        {"ARenewalThatNobodyAskedFor", "C4", two_holders().drop("B.renew").drop("B.renew.end")},
        {"AReleaseBySomebodyElse", "C4", two_holders().change("5", R"("id":"B")", R"("id":"A")")},
        {"AReleaseThatIsGone", "C4",
         two_holders().drop("5").change("state", R"("seq":5,"id":"")", R"("seq":4,"id":"B")")},
        {"AGrantBesideALiveLease", "C4",
         theft().change("2", "stolen", "acquired").change("2", R"("from":"A")", R"("from":"")")},
        {"AGrantThatDoesNotNameTheLeaseWhoseEndWasAnnounced", "C4",
         announced().change("3", R"("from":"A")", R"("from":"")")},
        {"TheEndOfAnotherLease", "C4", announced().change("2", R"("id":"A")", R"("id":"X")")},
        {"AReleaseAfterTheEnd", "C4",
         announced().change("3", "acquired", "released").change("3", R"("id":"B")", R"("id":"A")")},
        {"AStealFromSomebodyElse", "C4", theft().change("2", R"("from":"A")", R"("from":"X")")},
        {"ALeaseGrantedTwice", "C4",
         two_holders()
             .audit("6", 6, "acquired", "A", 300)
             .change("state", R"("seq":5,"id":"","tok":200)", R"("seq":6,"id":"A","tok":300)")},
        {"ALockThatIsNotWhatItsLastEventSays", "C4", two_holders().change("state", R"("id":"")", R"("id":"B")")},
        {"ABrokenChain", "C4", two_holders().change("state", R"("chain":"ok")", R"("chain":"broken")")},
        {"AnAcknowledgedBreakThatIsGone", "C4",
         broken()
             .drop("broken")
             .change("2", R"("seq":3,"kind":"acquired")", R"("seq":2,"kind":"stolen")")
             .change("2", R"("from":"")", R"("from":"A")")
             .change("state", R"("seq":3)", R"("seq":2)")},
    };
}

std::vector<Case> registers() {
    return {
        {"ALostUpdate", "C5", two_holders().change("v2", R"("base":1)", R"("base":0)")},
        {"AnAcknowledgedWriteThatIsGone", "C5", two_holders().drop("v2")},
        {"AWriteAcknowledgedAsAnotherVersion", "C5", two_holders().change("B.write.end", R"("v":2)", R"("v":3)")},
        {"ARefusedWriteThatWasMade", "C5", two_holders().change("B.write.end", R"("ok")", R"("refused")")},
        {"AWriteMadeTwice", "C5", two_holders().write_entry("v3", 3, "B", 200, 1, 2)},
        {"AWriteThatNobodyMade", "C5", two_holders().write_entry("v3", 3, "B", 200, 2, 2)},
        {"AVersionThatIsMissing", "C5",
         two_holders()
             .change("v2", R"("v":2)", R"("v":3)")
             .change("v2", R"("base":1)", R"("base":2)")
             .change("B.write.end", R"("v":2)", R"("v":3)")},
        {"AReadOfThePast", "C5", two_holders().change("B.read.end", R"("v":1)", R"("v":0)")},
        // It began before the seal, so nothing but the order of the journal can show it.
        {"AnOlderHolderAfterANewerOne", "C5",
         two_holders()
             .unheard("A.late", "a2", 40, R"("op":"write","id":"A","tok":100,"n":2,"base":2)")
             .write_entry("v3", 3, "A", 100, 2, 2)},
        {"TwoHoldersUnderOneToken", "C5",
         two_holders()
             .unheard("X.write", "x", 62, R"("op":"write","id":"X","tok":200,"n":1,"base":2)")
             .write_entry("v3", 3, "X", 200, 1, 2)},
        {"WritesAgainstRealTime", "C5",
         two_holders()
             .call("B.again", "b", 62, 63, R"("op":"write","id":"B","tok":200,"n":2,"base":1)", R"("r":"ok","v":2)")
             .change("B.write.end", R"("v":2)", R"("v":3)")
             .change("v2", R"("n":1)", R"("n":2)")
             .write_entry("v3", 3, "B", 200, 1, 2)},
        {"AStaleWriteAccepted", "C6",
         theft().change("A.write.end", R"("refused")", R"("ok","v":1)").write_entry("v1", 1, "A", 100, 1, 0)},
        {"AStaleWriteThatNobodyHeardOf", "C6",
         theft().change("A.write.end", R"("refused")", R"("unknown")").write_entry("v1", 1, "A", 100, 1, 0)},
    };
}

std::vector<Case> liveness_and_force() {
    const std::string turn = R"("op":"turn")";
    return {
        {"ATurnRefusedAfterTheFaults", "C7",
         two_holders().heal(100).call("turn", "a", 110, 9000, turn, R"("r":"refused")")},
        {"ATurnThatNeverCame", "C7", two_holders().heal(100).unheard("turn", "a", 110, turn)},
        {"AWaiterOvertaken", "C7", overtaken()},
        {"AWaiterOvertakenByWhoWasHandedTheLock", "C7",
         overtaken()
             .call("C.wait", "c", 26, 27, R"("op":"acquire","id":"C","ticket":3000)",
                   R"("r":"refused","why":"E_LOCK_CONFLICT")")
             .change("C.acquire", R"("op":"acquire","id":"C","ticket":3000)", R"("op":"handed","id":"C")")},
        {"AHandedTokenThatIsNotInTheAudit", "C4",
         two_holders()
             .change("B.acquire", R"("op":"acquire","id":"B","ticket":3000)", R"("op":"handed","id":"B")")
             .drop("3")
             .drop("4")
             .drop("5")
             .drop("B.renew")
             .drop("B.renew.end")
             .drop("B.release")
             .drop("B.release.end")
             .drop("state")
             .state(2, "", 100)},
        {"ARenewalOfABrokenLease", "C9",
         broken()
             .call("A.renew", "a", 520, 530, R"("op":"renew","id":"A","tok":100)", R"("r":"ok","rs":1)")
             .drop("broken")
             .drop("2")
             .audit("renewed", 2, "renewed", "A", 100)
             .audit("broken", 3, "broken", "A", 150, "A")
             .audit("2", 4, "acquired", "B", 200)
             .change("state", R"("seq":3)", R"("seq":4)")},
        {"AWriteAfterTheForce", "C9",
         broken()
             .drop("B.seal")
             .drop("B.seal.end")
             .call("force", "o", 490, 515, R"("op":"force","id":"A","tok":100)", R"("r":"ok")")
             .call("A.write", "a", 520, 530, R"("op":"write","id":"A","tok":100,"n":1,"base":0)", R"("r":"ok","v":1)")
             .write_entry("v1", 1, "A", 100, 1, 0)},
    };
}

std::vector<Case> supervisors() {
    return {
        {"AChildThatOutlivesItsLease", "C10", supervised().change("A.life.end", "800000000", "860000000")},
        {"AChildThatLivesOnAndOn", "C10",
         supervised().change("A.life.end", "800000000", "2000000000").change("A.run.end", "810000000", "2010000000")},
        {"AChildBesideAHolder", "C10",
         supervised()
             .drop("B.life")
             .drop("B.life.beat")
             .drop("B.life.end")
             .call("B.acquire", "b2", 700, 750, R"("op":"acquire","id":"B")", R"("r":"ok","tok":200)")
             .believe("B.believe", "b2", "B", 200, 750, 1200)
             .call("B.release", "b2", 900, 910, R"("op":"release","id":"B","tok":200)", R"("r":"ok")")},
        {"AChildUnderALeaseThatIsGone", "C4",
         supervised().drop("4").drop("5").change("state", R"("seq":5,"id":"","tok":200)",
                                                 R"("seq":3,"id":"","tok":100)")},
        {"AChildUnderTheTokenOfAnother", "C1",
         supervised()
             .add("X", R"("e":"life","p":"x","l":"L","id":"X","tok":200,"what":"beat","t":1450000000)")
             .fault("restore", "", 1460, 1470, 1440)},
    };
}

std::vector<Case> bad_histories() {
    std::vector<Case> all;
    for (auto part : {tokens, beliefs, audits, registers, liveness_and_force, supervisors})
        std::ranges::move(part(), std::back_inserter(all));
    return all;
}

class BadHistory : public testing::TestWithParam<Case> {};

TEST_P(BadHistory, IsSeenByTheCheckThatItBreaks) {
    EXPECT_THAT(checks_that_see(GetParam().story), testing::ElementsAre(GetParam().check));
}

class Rule : public testing::TestWithParam<std::string> {};

TEST_P(Rule, LeftOutLetsABadHistoryPass) {
    const auto passes_without = [](const std::string& rule) {
        return [rule](const Case& bad) {
            return checker::exit_status_of(checker::judge(checker::parse(bad.story.text()), {rule})) == 0;
        };
    };
    EXPECT_TRUE(std::ranges::any_of(bad_histories(), passes_without(GetParam())));
    EXPECT_TRUE(std::ranges::none_of(bad_histories(), passes_without("")));
}

INSTANTIATE_TEST_SUITE_P(Checker, Rule, testing::Values("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"),
                         [](const auto& test) { return test.param; });

INSTANTIATE_TEST_SUITE_P(Checker, BadHistory, testing::ValuesIn(bad_histories()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace torture
