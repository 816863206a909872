// A configuration that nobody named is read only if nobody else can have written it, and no command waits for a file.
#include "sandbox.hpp"
#include "support/isolation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t somebody = 4242;

class ConfigTrust : public testing::Test {
protected:
    /// One that waits is ended, and then its status is that of the signal.
    Ended run(const Args& args, const Environment& more = {}) {
        Args command{"/usr/bin/timeout", "-s", "KILL", "30", box.program};
        command.insert(command.end(), args.begin(), args.end());
        return box.run_program(command, more);
    }

    void expect_refused(const fs::path& path, const std::string& why) {
        const auto refused = run({"acquire", "a", "--json"});
        EXPECT_EQ(refused.status, 78) << why;
        if (refused.status != 78) return;
        EXPECT_EQ(refused.code(), "E_CONFIG");
        EXPECT_THAT(refused.json().text("/error/message"), AllOf(HasSubstr(path.string()), HasSubstr("--config")))
            << why;
        EXPECT_FALSE(fs::exists(box.state)) << "nothing was done meanwhile";
    }

    Sandbox box;
    const fs::path file = box.work / "holdfast.toml";
};

TEST_F(ConfigTrust, AFileThatOthersCanWriteIsRefusedWhereverItIsFound) {
    for (const fs::path& path :
         {file, box.root / "holdfast.toml", box.root / "config" / "holdfast" / "holdfast.toml"}) {
        box.write(path, "operation = \"x\"\n");
        for (const mode_t mode : {0664U, 0646U, 0666U}) {
            ASSERT_EQ(chmod(path.c_str(), mode), 0);
            expect_refused(path, "mode");
        }
        ASSERT_EQ(chmod(path.c_str(), 0644), 0);
        EXPECT_EQ(run({"status"}).status, 0) << path;
        fs::remove(path);
    }
}

TEST_F(ConfigTrust, AnotherUsersFileIsRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "only root can give a file away";
    box.write(file, "operation = \"x\"\n");
    ASSERT_EQ(chown(file.c_str(), somebody, somebody), 0);
    expect_refused(file, "owner");
    // Named, it is read: that is the way out.
    EXPECT_EQ(run({"acquire", "a", "--json", "--config", "holdfast.toml"}).json().text("/operation"), "x");
}

TEST_F(ConfigTrust, AnotherUsersLinkIsRefusedAlsoIfItLeadsToAGoodFile) {
    box.write(box.root / "good.toml", "operation = \"x\"\n");
    fs::create_symlink("../good.toml", file);
    EXPECT_EQ(run({"acquire", "a", "--json"}).json().text("/operation"), "x") << "a link of one's own is fine";
    fs::remove_all(box.state);
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "only root can give a link away";
    ASSERT_EQ(lchown(file.c_str(), somebody, somebody), 0);
    expect_refused(file, "link");
    // Behind a link of one's own, too.
    fs::rename(file, box.work / "theirs");
    fs::create_symlink("theirs", file);
    expect_refused(box.work / "theirs", "second link");
}

TEST_F(ConfigTrust, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    expect_refused(file, "named pipe");
    fs::remove(file);
    fs::create_directory(file);
    expect_refused(file, "folder");
}

TEST_F(ConfigTrust, NamedFilesAreNotWaitedForEither) {
    const fs::path pipe = box.root / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(run({"status", "--config", pipe.string()}).status, 78);
    EXPECT_EQ(run({"status"}, {{"HOLDFAST_STORE_FILE", pipe.string()}}).status, 78);
    EXPECT_EQ(run({"status"}, {{"HOLDFAST_STORE_FILE", box.root.string()}}).status, 78);
    for (const std::string& secret : {pipe.string(), box.root.string()}) {
        box.write(file, "store = \"sqlite:${file:" + secret + "}\"\n");
        EXPECT_EQ(run({"status"}).status, 78) << secret;
        fs::remove(file);
    }
    EXPECT_EQ(run({"status", "--config", "/dev/null"}).status, 0) << "no configuration";
}

TEST_F(ConfigTrust, AFileThatCannotBeLookedForIsNotPassedOver) {
    fs::create_directory(box.work / "gone");
    const auto ended = box.run_program({"/bin/sh", "-c",
                                        "cd gone && rmdir ../gone && '" + box.program + "' acquire a; echo $?; '" +
                                            box.program + "' acquire a --config /dev/null -q > /dev/null; echo $?"});
    EXPECT_EQ(ended.out, "78\n0\n") << ended.err;
}

TEST_F(ConfigTrust, HelpIsThereAlsoWhereTheConfigurationIsRefused) {
    box.write(file, "nonsense");
    for (const Args& args : std::vector<Args>{{"help"}, {"acquire", "--help"}, {"version"}, {"completion", "bash"}})
        EXPECT_EQ(run(args).status, 0) << args[0];
}

}  // namespace
}  // namespace holdfast::cli_test
