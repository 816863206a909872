// Goal: the static program does by itself what it can, and says what it lacks for the rest. Method: a copy of it with
// nothing beside it.
#include "cli/sandbox.hpp"
#include "support/isolation.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class ShortProgram : public testing::Test {
protected:
    void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "a sanitizer needs the full program; the release build runs this";
#endif
        ASSERT_NE(box_.program, full_program()) << "without the archives of libc and SQLite no static program is built";
        const fs::path copy = box_.root / "bin" / "holdfast";
        fs::create_directories(copy.parent_path());
        fs::copy_file(box_.program, copy);
        box_.program = copy.string();
    }

    Sandbox box_;
};

TEST_F(ShortProgram, AloneServesTheStoresThatNeedNoDriver) {
    for (const std::string& store : stores())
        EXPECT_EQ(box_.run({"run", "a", "--store", store, "--", "true"}).status, 0) << store;
}

TEST_F(ShortProgram, AloneSaysWhichProgramServesTheOthers) {
    const auto ended = box_.run({"status", "a", "--store", "redis://127.0.0.1:1/0"});
    EXPECT_EQ(ended.status, 64);
    EXPECT_THAT(ended.err, HasSubstr((box_.root / "libexec" / "holdfast-full").string()));
    EXPECT_THAT(ended.err, HasSubstr("make install"));
}

TEST_F(ShortProgram, AloneNamesAnUnlistedUserByNumber) {
    if (box_.run_program({"/usr/bin/unshare", "--user", "--map-user=42424242", "/bin/true"}).status != 0)
        GTEST_SKIP() << tests::not_here << "no process can have a user namespace";
    const auto ended = box_.run_program({"/usr/bin/unshare", "--user", "--map-user=42424242", box_.program, "acquire",
                                         "a", "--json", "--store", "file:locks"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(":42424242:"));
}

TEST_F(ShortProgram, GoesOnAsTheOtherWithTheWholeCommandLine) {
    const fs::path other = box_.root / "libexec" / "holdfast-full";
    box_.write(other, "#!/bin/sh\nprintf '[%s]' \"$@\"\n");
    fs::permissions(other, fs::perms::owner_all);
    const auto ended = box_.run({"status", "a b", "--store", "redis://:secret@127.0.0.1:1/0"});
    EXPECT_EQ(ended.out, "[status][a b][--store][redis://:secret@127.0.0.1:1/0]");
}

/// The program in the sandbox as its whole world, in which there is no /proc.
class WithoutProc : public ShortProgram {
protected:
    void SetUp() override {
        ShortProgram::SetUp();
        if (IsSkipped()) return;
        if (geteuid() != 0) chroot_.insert(chroot_.begin(), {"/usr/bin/unshare", "--user", "--map-root-user"});
        if (run({"/bin/holdfast", "version"}).status != 0)
            GTEST_SKIP() << tests::not_here << "no chroot and no user namespace";
        // It is no program at all, so that trying to run it has an error of its own.
        for (const fs::path& folder : {box_.root / "libexec", box_.root / "trap" / "libexec"}) {
            box_.write(folder / "holdfast-full", "x");
            fs::permissions(folder / "holdfast-full", fs::perms::owner_all);
        }
        fs::create_directories(box_.root / "trap" / "work");
        fs::copy_file(box_.program, box_.root / "trap" / "work" / "holdfast");
    }

    Ended run(const Args& args) {
        Args command = chroot_;
        command.insert(command.end(), args.begin(), args.end());
        return box_.run_program(command, {{"HOME", "/home"}, {"XDG_STATE_HOME", "/state"}, {"XDG_CONFIG_HOME", ""}});
    }

    Args chroot_{"/usr/sbin/chroot", box_.root.string()};
};

TEST_F(WithoutProc, NothingIsRunThatStandsBesideTheWorkingFolder) {
    const auto called = [&](const std::string& program) {
        return run({program, "status", "a", "--store", "redis://127.0.0.1:1/0"});
    };
    const auto absolute = called("/bin/holdfast");
    EXPECT_EQ(absolute.status, 64);
    EXPECT_THAT(absolute.err, HasSubstr("/libexec/holdfast-full, which cannot be run: Exec format error"));
    const auto relative = called("trap/work/holdfast");
    EXPECT_EQ(relative.status, 64);
    EXPECT_THAT(relative.err, HasSubstr("absolute path"));
    EXPECT_THAT(relative.err, Not(HasSubstr("Exec format error")));
}

TEST_F(WithoutProc, LocksWorkAndErrorsAreSensible) {
    for (const std::string store : {"sqlite:/locks.db", "file:/locks"}) {
        const auto granted = run({"/bin/holdfast", "run", "a", "--store", store, "--", "/bin/holdfast", "version"});
        EXPECT_EQ(granted.status, 0) << granted.err;
        EXPECT_THAT(granted.err, HasSubstr("without /proc only the command's process group can be ended")) << store;
        EXPECT_EQ(run({"/bin/holdfast", "doctor", "--store", store}).status, 0) << store;
    }
}

TEST_F(ShortProgram, TakesNoIndexOfALogForCurrentThatOthersLeft) {
    const fs::path file = box_.root / "locks.db";
    const fs::path index = file.string() + "-shm";
    const fs::path older = box_.root / "older-index";
    const std::string store = "sqlite:" + file.string();
    // Of a time when the log has what the database has not.
    ASSERT_EQ(box_.run({"run", "a", "--store", store, "--", "cp", index.string(), older.string()}).status, 0);
    const auto grant = box_.run({"acquire", "b", "--json", "--store", store});
    ASSERT_EQ(grant.status, 0);
    ASSERT_TRUE(fs::copy_file(older, index, fs::copy_options::overwrite_existing));
    EXPECT_EQ(box_.run({"status", "b", "--json", "--store", store}).json().text("/state"), "held");
    EXPECT_EQ(box_.run({"run", "a", "--store", store, "--", "true"}).status, 0);
}

}  // namespace
}  // namespace holdfast::cli_test
