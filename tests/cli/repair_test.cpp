// Locks that cannot be read: the others are shown all the same, and an operator makes them usable again.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <iterator>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class RepairCommand : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        box.environment["HOLDFAST_STORE"] = GetParam();
        for (const char* name : {"a", "b", "c"}) ASSERT_EQ(box.run({"acquire", name, "--ttl", "1h"}).status, 0);
        corrupt("b");
    }

    void corrupt(const std::string& name) const {
        if (GetParam().starts_with("sqlite:")) {
            sqlite3* database = nullptr;
            ASSERT_EQ(sqlite3_open((box.work / "locks.db").c_str(), &database), SQLITE_OK);
            const std::string sql = "UPDATE holdfast_locks SET token = token + 1 WHERE name = '" + name + "'";
            EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
            sqlite3_close(database);
            return;
        }
        for (const auto& entry : std::filesystem::recursive_directory_iterator(box.work / "locks")) {
            if (entry.path().filename() != "record" || entry.path().parent_path().filename() != "n." + name) continue;
            std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
            file.seekp(40).put('~');
            return;
        }
        FAIL() << "no record of " << name;
    }

    Sandbox box;
};

TEST_P(RepairCommand, StatusShowsTheOthersAndNamesTheLockThatCannotBeRead) {
    const auto shown = box.run({"status"});
    EXPECT_EQ(shown.status, 84) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("a\theld"));
    EXPECT_THAT(shown.out, HasSubstr("b\tunreadable"));
    EXPECT_THAT(shown.out, HasSubstr("c\theld"));
    EXPECT_THAT(shown.err, HasSubstr("E_RECORD_CORRUPT: b cannot be read"));
    EXPECT_THAT(shown.err, HasSubstr("holdfast repair b"));
    const auto document = box.run({"status", "--json"});
    EXPECT_EQ(document.status, 84);
    EXPECT_EQ(document.code(), "E_RECORD_CORRUPT");
    EXPECT_EQ(document.json().size("/locks"), 3U);
    EXPECT_EQ(document.json().text("/locks/1/state"), "unreadable");
    EXPECT_EQ(box.run({"status", "a*"}).status, 0) << "it is not among them";
    const auto one = box.run({"status", "b"});
    EXPECT_EQ(one.status, 84);
    EXPECT_THAT(one.err, HasSubstr("holdfast repair b"));
}

TEST_P(RepairCommand, MakesTheLockUsableWhenSomebodyAgrees) {
    EXPECT_EQ(box.run({"acquire", "b"}).status, 84);
    const auto unasked = box.run({"repair", "b", "--json"});
    EXPECT_EQ(unasked.status, 64);
    EXPECT_THAT(unasked.json().text("/error/message"), HasSubstr("--yes"));
    EXPECT_EQ(box.run_on_terminal({"repair", "b"}, "n\n").status, 77);
    EXPECT_EQ(box.run({"status", "b"}).status, 84);

    const auto repaired = box.run_on_terminal({"repair", "b", "-m", "disk was full"}, "y\n", Sandbox::Screen::all);
    EXPECT_EQ(repaired.status, 0) << repaired.err;
    EXPECT_THAT(repaired.err, HasSubstr("b is usable again, with token "));
    EXPECT_THAT(repaired.err, HasSubstr("the record could not be read"));
    const auto status = box.run({"status", "b", "--json"}).json();
    EXPECT_EQ(status.text("/state"), "free");
    EXPECT_GT(status.number("/token"), box.run({"status", "a", "--json"}).json().number("/token"));
    const auto event = box.run({"history", "b", "--limit", "1", "--json"}).json();
    EXPECT_EQ(event.text("/events/0/event"), "repaired");
    EXPECT_EQ(event.text("/events/0/reason"), "disk was full");
    EXPECT_TRUE(event.has("/events/0/actor"));
    EXPECT_TRUE(event.has("/events/0/details/damaged"));
    EXPECT_EQ(box.run({"history", "--verify"}).status, 0);
    EXPECT_EQ(box.run({"acquire", "b"}).status, 0);
    EXPECT_EQ(box.run({"status"}).status, 0);
}

TEST_P(RepairCommand, OfALockThatCanBeReadChangesNothing) {
    const auto before = box.run({"status", "a", "--json"}).json();
    const auto repaired = box.run({"repair", "a", "--yes", "--json"});
    EXPECT_EQ(repaired.status, 0);
    EXPECT_FALSE(repaired.json().yes("/repaired"));
    EXPECT_EQ(repaired.json().text("/lock_id"), before.text("/lock_id"));
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().number("/seq"), before.number("/seq"));
    EXPECT_THAT(box.run({"repair", "a", "--yes"}).out, HasSubstr("nothing to repair"));
    EXPECT_TRUE(box.run({"repair", "b", "--yes", "--json"}).json().yes("/repaired"));
}

INSTANTIATE_TEST_SUITE_P(Stores, RepairCommand, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
