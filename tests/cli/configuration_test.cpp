// Where a value comes from: the command line, the environment, the configuration file, the default.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::cli_test {
namespace {

class Configuration : public testing::Test {
protected:
    std::string operation(const Args& more = {}, const Environment& environment = {}) {
        Args args{"acquire", "lock " + std::to_string(++locks_), "--json"};
        args.insert(args.end(), more.begin(), more.end());
        return box.run(args, environment).json().text("/operation");
    }

    Sandbox box;

private:
    int locks_ = 0;
};

TEST_F(Configuration, AFlagCountsMoreThanTheEnvironmentAndThatMoreThanTheFile) {
    EXPECT_EQ(operation(), "null");
    box.write(box.work / "holdfast.toml", "operation = \"file\"\n");
    EXPECT_EQ(operation(), "file");
    EXPECT_EQ(operation({}, {{"HOLDFAST_OPERATION", "environment"}}), "environment");
    EXPECT_EQ(operation({"--operation", "flag"}, {{"HOLDFAST_OPERATION", "environment"}}), "flag");
    // What is set to nothing is not set.
    EXPECT_EQ(operation({}, {{"HOLDFAST_OPERATION", ""}}), "file");
}

TEST_F(Configuration, TheNearestFileIsReadAndNoOther) {
    box.write(box.root / "config" / "holdfast" / "holdfast.toml", "operation = \"user\"\nreason = \"user\"\n");
    EXPECT_EQ(operation(), "user");
    box.write(box.root / "holdfast.toml", "operation = \"project\"\n");
    EXPECT_EQ(operation(), "project");
    EXPECT_EQ(box.run({"acquire", "a", "--json"}).json().has("/reason"), false);
    box.write(box.root / "other.toml", "operation = \"named\"\n");
    EXPECT_EQ(operation({"--config", "../other.toml"}), "named");
    EXPECT_EQ(operation({}, {{"HOLDFAST_CONFIG", "../other.toml"}}), "named");
}

TEST_F(Configuration, EveryKindOfValueCanStandInTheFile) {
    box.write(box.work / "holdfast.toml",
              "ttl = \"10m\"\nmax_hold = \"20m\"\nunless_held = [\"x\", \"y\"]\nconflict_exit_code = 9\njson = "
              "true\nif_held = \"fail\"\n");
    const auto granted = box.run({"acquire", "a"});
    EXPECT_GT(granted.json().number("/expires_in_ms"), 9 * 60'000);
    EXPECT_TRUE(granted.json().has("/max_until"));
    EXPECT_EQ(box.run({"acquire", "a"}).status, 9);
    EXPECT_EQ(box.run({"acquire", "x"}, {{"HOLDFAST_UNLESS_HELD", "other"}}).status, 0);
    EXPECT_EQ(box.run({"acquire", "b"}).status, 9);
    EXPECT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", granted.json().text("/lease")}}).status, 0);
}

TEST_F(Configuration, ABadFileIsRefusedWithItsLineAndWritesNothing) {
    const std::vector<std::pair<std::string, std::string>> bad{
        {"operation = \"a\"\nttl = \n", ":2"},
        {"a b c\n", ":1"},
        {"\n\nttll = \"1s\"\n", ":3"},
        {"ttl = \"soon\"\n", ":1"},
        {"ttl = \"-1s\"\n", ":1"},
        {"lease = \"x\"\n", ":1"},
        {"quiet = \"perhaps\"\n", ":1"},
        {"ttl = [\"1s\"]\nttl = 1", ":2"},
        {"ttl = [\"1s\", \"2s\"]\n", ":1"},
        {"operation = 1979-05-27\n", ":1"},
        {"store = \"sqlite:${file:nowhere}\"\n", ":1"},
        {"store = \"sqlite:${file:x\"\n", ":1"},
        {"operation = \"a\\u0000b\"\n", ":1"},
    };
    for (const auto& [text, line] : bad) {
        box.write(box.work / "holdfast.toml", text);
        const auto before = box.files();
        const auto refused = box.run({"acquire", "a", "--json"});
        EXPECT_EQ(refused.status, 78) << text;
        EXPECT_EQ(refused.code(), "E_CONFIG") << text;
        EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr("holdfast.toml" + line)) << text;
        EXPECT_EQ(box.files(), before) << text;
    }
}

TEST_F(Configuration, AFileThatCannotBeReadIsAnErrorAndNotPassedOver) {
    if (geteuid() == 0) {
        // Root reads everything, but nobody reads a link to itself.
        std::filesystem::create_symlink("holdfast.toml", box.work / "holdfast.toml");
    } else {
        box.write(box.work / "holdfast.toml", "");
        ASSERT_EQ(chmod((box.work / "holdfast.toml").c_str(), 0), 0);
    }
    EXPECT_EQ(box.run({"acquire", "a", "--json"}).code(), "E_CONFIG");
}

// Such as one into a file system that is not mounted now. The file of a folder above names another store.
TEST_F(Configuration, ALinkThatLeadsNowhereIsAnErrorAndNotPassedOver) {
    box.write(box.root / "holdfast.toml", "store = \"sqlite:above.db\"\n");
    std::filesystem::create_symlink("not-there.toml", box.work / "holdfast.toml");
    const auto refused = box.run({"acquire", "a", "--json"});
    EXPECT_EQ(refused.status, 78);
    EXPECT_EQ(refused.code(), "E_CONFIG");
    EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr((box.work / "holdfast.toml").string()));
    EXPECT_FALSE(std::filesystem::exists(box.root / "above.db"));
}

TEST_F(Configuration, AStoreInTheFileIsTheSameFromEveryFolder) {
    box.write(box.work / "holdfast.toml", "store = \"sqlite:locks.db\"\n");
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    std::filesystem::create_directories(box.work / "deep" / "down");
    const std::string script = std::string("cd deep/down && '") + HOLDFAST_PROGRAM + "' acquire a";
    EXPECT_EQ(box.run_program({"/bin/sh", "-c", script}).status, 75);
    EXPECT_TRUE(std::filesystem::exists(box.work / "locks.db"));
}

TEST_F(Configuration, TheStoresAddressCanStandInAFileOfItsOwn) {
    box.write(box.root / "secret", "sqlite:secret.db\n");
    ASSERT_EQ(box.run({"acquire", "a"}, {{"HOLDFAST_STORE_FILE", (box.root / "secret").string()}}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(box.work / "secret.db"));

    box.write(box.root / "name", "other\n");
    box.write(box.work / "holdfast.toml", "store = \"sqlite:${file:../name}.db\"\n");
    ASSERT_EQ(box.run({"acquire", "a"}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(box.work / "other.db"));
    // Named directly, it counts more than both.
    ASSERT_EQ(box.run({"acquire", "a"},
                      {{"HOLDFAST_STORE", "sqlite:direct.db"}, {"HOLDFAST_STORE_FILE", (box.root / "secret").string()}})
                  .status,
              0);
    EXPECT_TRUE(std::filesystem::exists(box.work / "direct.db"));
}

TEST_F(Configuration, ASecretIsLookedForBesideTheFileThatNamesIt) {
    const auto deep = box.work / "deep";
    std::filesystem::create_directories(deep);
    box.write(box.work / "first", "lo\n");
    box.write(box.work / "second", "cks");
    box.write(deep / "first", "wrong\n");
    box.write(deep / "second", "wrong\n");
    const std::string text = "store = \"sqlite:${file:first}${file:second}.db\"\n";
    box.write(box.work / "holdfast.toml", text);
    const std::string script = "cd deep && '" + box.program + "' acquire \"$@\" -q >/dev/null";
    EXPECT_EQ(box.run_program({"/bin/sh", "-c", script, "sh", "a", "--ttl", "1h"}).status, 0) << "found";
    EXPECT_TRUE(std::filesystem::exists(box.work / "locks.db"));
    EXPECT_EQ(box.run_program({"/bin/sh", "-c", script, "sh", "a", "--config", "../holdfast.toml"}).status, 75)
        << "named from another folder, it is the same store";
    EXPECT_EQ(box.run({"acquire", "a"}).status, 75);
}

TEST_F(Configuration, AnEmptySecretIsNone) {
    box.write(box.work / "holdfast.toml", "store = \"sqlite:locks${file:secret}.db\"\n");
    for (const char* nothing : {"", "\n", "\r\n", "\n\n"}) {
        box.write(box.work / "secret", nothing);
        for (const Environment& environment : {Environment{}, Environment{{"HOLDFAST_STORE_FILE", "secret"}}}) {
            const auto refused = box.run({"acquire", "a", "--json"}, environment);
            EXPECT_EQ(refused.status, 78);
            EXPECT_EQ(refused.code(), "E_CONFIG");
            EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr("secret"));
        }
    }
    EXPECT_FALSE(std::filesystem::exists(box.work / "locks.db"));
    EXPECT_FALSE(std::filesystem::exists(box.state));
    // A line's end belongs to the file, white space in front of it to the secret.
    box.write(box.work / "secret", "1\r\n");
    EXPECT_EQ(box.run({"acquire", "a"}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(box.work / "locks1.db"));
}

// What is read only in part may lack the policy that stands at its end.
TEST_F(Configuration, AFileIsReadWholeOrNotAtAll) {
    const std::size_t most = 1 << 20;
    const std::string begin = "operation = \"x\"\n";
    const std::string end = "\nreason = \"last\"\n";
    const auto padded = [&](std::size_t size) {
        return begin + std::string(size - begin.size() - end.size(), '#') + end;
    };
    for (const std::size_t size : {std::size_t{70'000}, most - 1, most}) {
        box.write(box.work / "holdfast.toml", padded(size));
        const auto read = box.run({"acquire", std::to_string(size), "--json"}).json();
        EXPECT_EQ(read.text("/operation") + read.text("/reason"), "xlast") << size;
    }
    const auto expect_too_large = [&](const Args& args, const Environment& environment) {
        const auto refused = box.run(args, environment);
        EXPECT_EQ(refused.status, 78);
        EXPECT_EQ(refused.code(), "E_CONFIG");
        EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr("large is larger than 1 MiB"));
    };
    for (const std::size_t size : {most + 1, 2 * most}) {
        box.write(box.work / "holdfast.toml", "");
        box.write(box.work / "large", padded(size));
        expect_too_large({"acquire", "a", "--json", "--config", "large"}, {});
        expect_too_large({"acquire", "a", "--json"}, {{"HOLDFAST_STORE_FILE", "large"}});
        box.write(box.work / "holdfast.toml", "store = \"sqlite:${file:large}\"\n");
        expect_too_large({"acquire", "a", "--json"}, {});
        box.write(box.work / "holdfast.toml", padded(size));
        EXPECT_THAT(box.run({"acquire", "a", "--json"}).json().text("/error/message"),
                    testing::HasSubstr("holdfast.toml is larger than 1 MiB"));
    }
}

TEST_F(Configuration, WithoutAnyTheStoreIsInTheUsersStateFolder) {
    ASSERT_EQ(box.run({"acquire", "a"}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(box.state / "holdfast" / "holdfast.db"));
    ASSERT_EQ(box.run({"acquire", "a"}, {{"XDG_STATE_HOME", ""}}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(box.root / "home" / ".local" / "state" / "holdfast" / "holdfast.db"));
    struct stat folder{};
    ASSERT_EQ(stat((box.state / "holdfast").c_str(), &folder), 0);
    EXPECT_EQ(folder.st_mode & 0777, 0700U);
    struct stat file{};
    ASSERT_EQ(stat((box.state / "holdfast" / "holdfast.db").c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600U);
}

TEST_F(Configuration, AFolderWithUnusualLettersIsStillAFolder) {
    const auto odd = box.root / "100% sure? yes";
    ASSERT_EQ(box.run({"acquire", "a"}, {{"XDG_STATE_HOME", odd.string()}}).status, 0);
    EXPECT_TRUE(std::filesystem::exists(odd / "holdfast" / "holdfast.db"));
}

}  // namespace
}  // namespace holdfast::cli_test
