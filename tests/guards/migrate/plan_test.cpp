// Files and rows of the ledger give what has to run, or why nothing can.
#include "guards/sql/migrate/plan.hpp"

#include <gmock/gmock.h>

namespace holdfast::guards::migrate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Folder folder(const std::map<std::string, std::string>& files) { return folder_of("m", files).value(); }

LedgerRow row(const std::string& version, const std::string& text, Status status = Status::applied) {
    LedgerRow made;
    made.version = version;
    made.name = "x";
    made.checksum = checksum_of(text);
    made.status = status;
    return made;
}

std::vector<std::string> versions_of(const Result<Plan>& plan) {
    if (!plan) return {plan.error().message};
    std::vector<std::string> versions;
    for (const Step& step : plan->steps) versions.push_back(step.file->version);
    return versions;
}

const std::map<std::string, std::string> three{{"1_a.sql", "a"}, {"2_b.sql", "b"}, {"3_c.sql", "c"}};

TEST(PlanTest, WhatWasNotAppliedRunsInOrder) {
    const Folder files = folder(three);
    EXPECT_THAT(versions_of(plan_up(files, {}, {})), ElementsAre("1", "2", "3"));
    EXPECT_THAT(versions_of(plan_up(files, {row("1", "a")}, {})), ElementsAre("2", "3"));
    EXPECT_THAT(versions_of(plan_up(files, {row("1", "a"), row("2", "b"), row("3", "c")}, {})), IsEmpty());
}

TEST(PlanTest, StopsAtTheVersionThatWasAskedFor) {
    const Folder files = folder(three);
    EXPECT_THAT(versions_of(plan_up(files, {}, {.to = 2})), ElementsAre("1", "2"));
    const auto unknown = plan_up(files, {}, {.to = 7});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Errc::usage);
}

TEST(PlanTest, AnEditedFileIsRefused) {
    const Folder files = folder(three);
    const auto plan = plan_up(files, {row("1", "edited")}, {});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::migration_checksum);
    EXPECT_THAT(plan.error().message, HasSubstr("m/1_a.sql"));
}

TEST(PlanTest, ALateFileIsRefusedUnlessItIsAllowed) {
    const Folder files = folder(three);
    const Ledger ledger{row("1", "a"), row("3", "c")};
    const auto plan = plan_up(files, ledger, {});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::migration_order);
    EXPECT_THAT(plan.error().message, HasSubstr("m/2_b.sql"));
    EXPECT_THAT(versions_of(plan_up(files, ledger, {.out_of_order = OutOfOrder::allowed})), ElementsAre("2"));
}

TEST(PlanTest, AHoleIsRefused) {
    const Folder files = folder({{"1_a.sql", "a"}, {"3_c.sql", "c"}});
    const auto plan = plan_up(files, {row("1", "a"), row("2", "b"), row("3", "c")}, {});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::migration_order);
    EXPECT_THAT(versions_of(plan_up(files, {row("1", "a"), row("2", "b", Status::removed), row("3", "c")}, {})),
                IsEmpty());
}

TEST(PlanTest, ADatabaseAheadOfTheFilesIsAWarning) {
    const Folder files = folder({{"1_a.sql", "a"}, {"R__v.sql", "older"}});
    const auto plan = plan_up(files, {row("1", "a"), row("2", "b"), row("R__v", "newer")}, {});
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_THAT(plan->steps, IsEmpty()) << "an older text must not replace a newer one";
    EXPECT_THAT(plan->warnings, ElementsAre(HasSubstr("ahead of the files")));
}

TEST(PlanTest, WhatTheBaselineCoversDoesNotRun) {
    const Folder files = folder(three);
    EXPECT_THAT(versions_of(plan_up(files, {row("2", "", Status::baseline)}, {})), ElementsAre("3"));
    const auto past_the_files = plan_up(files, {row("9", "", Status::baseline)}, {});
    EXPECT_THAT(past_the_files->warnings, IsEmpty());
}

TEST(PlanTest, AFileThatWasRefusedHalfWayNeedsADecision) {
    const Folder files = folder(three);
    const auto plan = plan_up(files, {row("1", "a"), row("2", "b", Status::failed)}, {});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::migration_dirty);
}

TEST(PlanTest, AFileWhoseProcessDiedGoesOn) {
    const Folder files = folder(three);
    LedgerRow half = row("2", "b", Status::running);
    half.statements_done = 4;
    const auto plan = plan_up(files, {row("1", "a"), half}, {});
    ASSERT_EQ(versions_of(plan), (std::vector<std::string>{"2", "3"}));
    EXPECT_TRUE(plan->steps[0].resumed);
    EXPECT_EQ(plan->steps[0].statements_done, 4);
    EXPECT_FALSE(plan->steps[1].resumed);

    half.checksum = checksum_of("edited");
    const auto edited = plan_up(files, {row("1", "a"), half}, {});
    ASSERT_FALSE(edited);
    EXPECT_EQ(edited.error().code, Errc::migration_dirty);
}

TEST(PlanTest, RepeatableFilesRunLastAndAgainWhenTheyChanged) {
    const Folder files = folder({{"1_a.sql", "a"}, {"R__v.sql", "v"}, {"R__w.sql", "w"}});
    EXPECT_THAT(versions_of(plan_up(files, {}, {})), ElementsAre("1", "R__v", "R__w"));
    EXPECT_THAT(versions_of(plan_up(files, {row("1", "a"), row("R__v", "v"), row("R__w", "old")}, {})),
                ElementsAre("R__w"));
    EXPECT_THAT(versions_of(plan_up(files, {}, {.to = 1})), ElementsAre("1")) << "they wait for all files";
}

TEST(PlanTest, APlanIsTheSameOnlyWithTheSameTexts) {
    const Folder before = folder(three);
    const Folder edited = folder({{"1_a.sql", "a"}, {"2_b.sql", "other"}, {"3_c.sql", "c"}});
    EXPECT_TRUE(plan_up(before, {}, {})->same_as(*plan_up(before, {}, {})));
    EXPECT_FALSE(plan_up(before, {}, {})->same_as(*plan_up(edited, {}, {})));
    EXPECT_FALSE(plan_up(before, {}, {})->same_as(*plan_up(before, {row("1", "a")}, {})));
}

TEST(PlanDownTest, TheNewestGoFirst) {
    auto files = three;
    for (const char* name : {"1_a.down.sql", "2_b.down.sql", "3_c.down.sql"}) files[name] = "x";
    const Folder all = folder(files);
    const Ledger ledger{row("1", "a"), row("2", "b"), row("3", "c"), row("R__v", "v")};
    EXPECT_THAT(versions_of(plan_down(all, ledger, {})), ElementsAre("3"));
    EXPECT_THAT(versions_of(plan_down(all, ledger, {.steps = 2})), ElementsAre("3", "2"));
    EXPECT_THAT(versions_of(plan_down(all, ledger, {.to = 1})), ElementsAre("3", "2"));
    EXPECT_THAT(versions_of(plan_down(all, ledger, {.to = 0})), ElementsAre("3", "2", "1"));
    EXPECT_THAT(versions_of(plan_down(all, {}, {})), IsEmpty());
}

TEST(PlanDownTest, AFileWithoutAWayBackIsRefused) {
    const auto plan = plan_down(folder(three), {row("1", "a")}, {});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::migration_order);
}

TEST(RepairTest, NamesWhatIsNotInOrder) {
    const Folder files = folder({{"1_a.sql", "a"}, {"3_c.sql", "c"}});
    std::vector<std::string> found;
    for (const Repair& repair :
         find_repairs(files, {row("1", "edited"), row("2", "gone"), row("3", "c", Status::failed), row("9", "ahead")}))
        found.push_back(repair.version + " " + repair.what);
    EXPECT_THAT(found, ElementsAre(HasSubstr("accept its text"), HasSubstr("gone"), HasSubstr("stopped after")));
}

TEST(StatusTest, EachHasAName) {
    for (const Status status : {Status::applied, Status::running, Status::failed, Status::baseline, Status::removed})
        EXPECT_EQ(status_of(name_of(status)), status);
    EXPECT_FALSE(status_of("other"));
}

}  // namespace
}  // namespace holdfast::guards::migrate
