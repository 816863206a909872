// `bench` measures what it says, and leaves the store usable. How quick it is, no test says.
#include "sandbox.hpp"

#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

TEST(Bench, CountsPairsAndHandOversAndReleasesItsLocks) {
    Sandbox box;
    box.environment["HOLDFAST_STORE"] = "sqlite:" + (box.root / "locks.db").string();
    const Ended run = box.run({"bench", "--clients", "3", "--time", "200ms", "--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    const Document found = run.json();
    EXPECT_EQ(found.number("/one/clients"), 1);
    EXPECT_EQ(found.number("/many/clients"), 3);
    for (const std::string part : {"/one", "/many"}) {
        EXPECT_GT(found.number(part + "/pairs_per_second"), 0);
        EXPECT_GT(found.number(part + "/acquire/count"), 0);
        EXPECT_EQ(found.number(part + "/acquire/count"), found.number(part + "/release/count"));
        EXPECT_LE(found.number(part + "/acquire/p50_us"), found.number(part + "/acquire/p99_us"));
        EXPECT_LE(found.number(part + "/acquire/p99_us"), found.number(part + "/acquire/max_us"));
    }
    EXPECT_GT(found.number("/handover/count"), 0);
    EXPECT_EQ(box.run({"status", "--json"}).json().size("/locks"), 0U) << "everything was given back";
    EXPECT_EQ(box.run({"history", "--verify"}).status, 0);
}

TEST(Bench, AsksTheStoreAtLeastOnceHoweverLittleTimeItHas) {
    Sandbox box;
    box.environment["HOLDFAST_STORE"] = "sqlite:" + (box.root / "locks.db").string();
    const Document found = box.run({"bench", "--clients", "2", "--time", "1ms", "--json"}).json();
    EXPECT_GE(found.number("/one/release/count"), 1);
    EXPECT_GE(found.number("/many/release/count"), 2) << "once for each client";
    EXPECT_GE(found.number("/handover/count"), 1);
}

TEST(Bench, RefusesWhatItCannotMeasure) {
    Sandbox box;
    box.environment["HOLDFAST_STORE"] = "sqlite:" + (box.root / "locks.db").string();
    for (const Args& command : {Args{"bench", "--clients", "0"}, Args{"bench", "--clients", "1001"},
                                Args{"bench", "--time", "soon"}, Args{"bench", "--clients", "many"}})
        EXPECT_EQ(box.run(command).status, 64) << command[2];
    EXPECT_FALSE(std::filesystem::exists(box.root / "locks.db")) << "nothing was created";
}

}  // namespace
}  // namespace holdfast::cli_test
