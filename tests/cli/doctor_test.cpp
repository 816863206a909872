// Goal: a script that asks `doctor` learns from its status whether something is wrong. Method: the real program on
// stores with one fault.
#include "cli/sandbox.hpp"

#include <gmock/gmock.h>

#include <fstream>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Doctor, EndsWithStatus78WhenACheckFails) {
    Sandbox box;
    const fs::path store = box.root / "locks";
    const std::string url = "file:" + store.string();
    ASSERT_EQ(box.run({"acquire", "a", "-s", url}).status, 0);
    EXPECT_EQ(box.run({"doctor", "-s", url}).status, 0);
    std::ofstream(store / "locks" / "n.a" / "record") << "damaged";
    const auto ended = box.run({"doctor", "-s", url});
    EXPECT_EQ(ended.status, 78);
    EXPECT_THAT(ended.out, HasSubstr("FAIL  records: "));
    EXPECT_THAT(ended.out, HasSubstr("n.a/record"));
}

// Whoever can read a database can keep its writers out.
TEST(Doctor, FailsForADatabaseThatOthersCanRead) {
    Sandbox box;
    ASSERT_EQ(box.run({"init", "-s", "sqlite:x.db"}).status, 0);
    EXPECT_EQ(box.run({"doctor", "-s", "sqlite:x.db"}).status, 0);
    fs::permissions(box.work / "x.db", fs::perms(0644));
    const auto ended = box.run({"doctor", "-s", "sqlite:x.db"});
    EXPECT_EQ(ended.status, 78);
    EXPECT_THAT(ended.out, HasSubstr("FAIL  permissions: 0644"));
}

TEST(Doctor, HasTheSameDocumentWhetherOrNotACheckFails) {
    Sandbox box;
    const fs::path store = box.root / "locks";
    const std::string url = "file:" + store.string();
    ASSERT_EQ(box.run({"acquire", "a", "-s", url}).status, 0);
    std::ofstream(store / "locks" / "n.a" / "record") << "damaged";
    const auto ended = box.run({"doctor", "--json", "-s", url});
    EXPECT_EQ(ended.status, 78);
    const auto found = ended.json();
    for (const char* field : {"/grade", "/store", "/reasons", "/checks/0/name", "/checks/0/ok", "/checks/0/detail"})
        EXPECT_TRUE(found.contains(field)) << field;
    EXPECT_FALSE(found.contains("/error"));
}

TEST(Doctor, FailsForAGradeBelowAOnlyWhenToldToBeStrict) {
    Sandbox box;
    for (const char* url : {"sqlite:x.db?sync=off", "file:x?sync=off"}) {
        ASSERT_EQ(box.run({"init", "-s", url}).status, 0);
        EXPECT_EQ(box.run({"doctor", "-s", url}).status, 0) << url;
        EXPECT_EQ(box.run({"doctor", "--strict", "-s", url}).status, 78) << url;
    }
}

TEST(Doctor, SaysWhichFormatAStoreHas) {
    Sandbox box;
    ASSERT_EQ(box.run({"init", "-s", "sqlite:x.db"}).status, 0);
    EXPECT_THAT(box.run({"doctor", "-s", "sqlite:x.db"}).out, HasSubstr("ok    format: 3\n"));
}

}  // namespace
}  // namespace holdfast::cli_test
