#include "holdfast/lease.hpp"
#include "values/text.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace holdfast {
namespace {

TEST(HolderTest, AProcessIsShownAsPeopleNameIt) {
    EXPECT_EQ((Holder{"web-3:ci:812:4711", ""}).display(), "ci@web-3 (pid 812)");
    EXPECT_EQ((Holder{"fe80::1:ci:812:4711", ""}).display(), "ci@fe80::1 (pid 812)");
}

TEST(HolderTest, AnythingElseIsShownAsItIs) {
    for (const std::string text :
         {"", "dashboard", "job:42", "a:b:c", "a:b:c:d", "a:b:12:d", "a:b:c:12", ":::", "::", ":", ":1:2:3",
          "a:b:12:", "a:b::12", "a:b:-1:2", "a:b:1 :2", "a:b:99999999999999999999999:1", "deploy of 12:30"})
        EXPECT_EQ((Holder{text, ""}).display(), text);
}

TEST(HolderTest, ThisProcessIsNamedByHostUserPidAndStart) {
    const Holder holder = Holder::this_process();
    std::istringstream fields(holder.text);
    std::vector<std::string> parts;
    for (std::string part; std::getline(fields, part, ':');) parts.push_back(part);
    ASSERT_EQ(parts.size(), 4U) << holder.text;
    EXPECT_FALSE(parts[0].empty());
    EXPECT_FALSE(parts[1].empty());
    EXPECT_EQ(parts[2], std::to_string(getpid()));
    EXPECT_GT(std::stoull(parts[3]), 0U) << "the start time tells this process from a later one with the same pid";
    EXPECT_EQ(holder.user, "");
    EXPECT_EQ(Holder::this_process(), holder);
    EXPECT_LE(holder.text.size(), 255U);
    EXPECT_FALSE(has_control(holder.text));
}

TEST(HolderTest, AForkedProcessIsAnother) {
    const Holder parent = Holder::this_process();
    const pid_t child = fork();
    if (child == 0) _exit(Holder::this_process() == parent ? 1 : 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "two processes under one name";
}

TEST(LockStateTest, HasTheNamesOfTheJson) {
    EXPECT_EQ(name_of(LockState::free), "free");
    EXPECT_EQ(name_of(LockState::held), "held");
    EXPECT_EQ(name_of(LockState::expired), "expired");
}

}  // namespace
}  // namespace holdfast
