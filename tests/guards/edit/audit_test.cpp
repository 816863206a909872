// The audit view: who edited which dashboard, from when to when, and how it ended.
#include "guards/edit/edit_fixture.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class EditAudit : public EditFixture {
protected:
    [[nodiscard]] std::vector<ProjectLease> audit() { return must(guard_.audit(locks_, soon())); }
};

TEST_F(EditAudit, ALeaseIsToldWithItsEnd) {
    const auto ana = must(open("architecture", "ana"));
    const Instant start = clock_.wall();
    clock_.advance(5min);
    must(guard_.renew(locks_, ana.as, soon()));
    EXPECT_EQ(audit().at(0), (ProjectLease{ProjectLockType::project, ana.as.lock_id, ana.lock.token, "architecture",
                                           "ana", start, std::nullopt, start + 35min, ""}));
    clock_.advance(1min);
    must(guard_.close(locks_, ana.as, soon()));
    EXPECT_EQ(audit().at(0).released_at, start + 6min);
    EXPECT_EQ(audit().at(0).ended_by, "released");
}

TEST_F(EditAudit, EveryEndHasItsName) {
    const auto ana = must(open("a", "ana"));
    const auto switched = Credentials::random();
    must(guard_.switch_to(locks_, ana.as, switched, {"b", "tab", "ana"}, soon()));
    clock_.advance(11min);
    must(guard_.take_over(locks_, look(), Credentials::random(), {"c", "tab", "ben"}, "", soon()));
    must(store_->apply_one(Break{locks_.edit, look().lease->lock_id, "olga", ""}, soon()));
    must(open("d", "ben"));
    clock_.advance(31min);

    std::vector<std::pair<std::string, std::string>> ends;
    for (const ProjectLease& lease : audit()) ends.emplace_back(lease.dashboard, lease.ended_by);
    using Ends = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(ends, (Ends{{"d", "expired"}, {"c", "broken"}, {"b", "stolen"}, {"a", "transferred"}}));
    EXPECT_EQ(audit().at(0).released_at, audit().at(0).expires_at) << "nobody announced it";
    must(open("e", "ana"));
    EXPECT_EQ(audit().at(1).ended_by, "expired") << "the next session does not change how the last one ended";
}

TEST_F(EditAudit, ALeaseEndsAtItsLongestHoldAndNotLater) {
    const Instant start = clock_.wall();
    const auto ana = must(open("a", "ana"));
    for (int i = 0; i < 5; ++i) {
        clock_.advance(22min);
        must(guard_.renew(locks_, ana.as, soon()));
    }
    EXPECT_EQ(audit().at(0).expires_at, start + 2h);
    EXPECT_EQ(look().lease->expires_at, start + 2h);
    clock_.advance(11min);
    EXPECT_EQ(audit().at(0).ended_by, "expired");
    EXPECT_EQ(audit().at(0).released_at, start + 2h);
    must(open("b", "ben"));
    EXPECT_EQ(audit().at(1).expires_at, start + 2h) << "also when somebody else has announced it";
    EXPECT_EQ(audit().at(1).released_at, start + 2h);
}

TEST_F(EditAudit, AnApprovedRequestLivesForItsOwnTime) {
    const auto ana = must(open("a", "ana"));
    clock_.advance(25min);
    const auto ben = Credentials::random();
    must(guard_.ask(locks_, ben, {"b", "tab", "ben"}, "", must(Ttl::of(1min)), soon()));
    must(guard_.answer(locks_, ben.lock_id, Verdict::approve, "ana", ana.as, soon()));
    clock_.advance(10min);
    ASSERT_EQ(look().lease->lock_id, ben.lock_id);
    EXPECT_EQ(audit().at(0).expires_at, look().lease->expires_at);
    EXPECT_EQ(audit().at(0).released_at, std::nullopt) << "the lease before it would have ended by now";
}

TEST_F(EditAudit, TheThreeLocksAreToldTogetherNewestFirst) {
    must(open("a", "ana"));
    clock_.advance(1s);
    must(guard_.validate(locks_, {"worker", ""}));
    clock_.advance(1s);
    must(store_->apply_one(by_carol(locks_.propagation, 1min), soon()));
    std::vector<ProjectLockType> types;
    for (const ProjectLease& lease : audit()) types.push_back(lease.type);
    EXPECT_THAT(types, testing::ElementsAre(ProjectLockType::propagation, ProjectLockType::validation,
                                            ProjectLockType::project));
}

}  // namespace
}  // namespace holdfast::tests
