// Goal: what this user may not read or write is told, and is never taken for something that does not exist. Method: a
// store of a plain user, some of whose rights are taken away.

#include "base/ownership.hpp"
#include "file_fixture.hpp"
#include "stores/file/folder.hpp"
#include "support/isolation.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

namespace holdfast::stores::file {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Restores a right at its end, so that the user of the test can remove its folder.
class WithMode {
public:
    WithMode(fs::path path, mode_t mode) : path_(std::move(path)), before_(fs::status(path_).permissions()) {
        EXPECT_EQ(chmod(path_.c_str(), mode), 0) << path_;
    }
    WithMode(const WithMode&) = delete;
    WithMode& operator=(const WithMode&) = delete;
    ~WithMode() { fs::permissions(path_, before_); }

private:
    fs::path path_;
    fs::perms before_;
};

class FileRights : public FileStoreTest {
protected:
    void SetUp() override {
        user_.emplace(root());
        if (!*user_) GTEST_SKIP() << tests::not_here << "root cannot become another user";
        store_ = open();
        static_cast<void>(granted(*store_, holder_));
    }
    [[nodiscard]] Finding finding(std::string_view name) {
        for (Finding& finding : store_->examine(Deadline::never()))
            if (finding.name == name) return finding;
        return {std::string(name), false, "nobody looked at it"};
    }
    [[nodiscard]] Errc code_of_inspect() {
        const auto status = store_->inspect(holder_.name, Deadline::never());
        EXPECT_FALSE(status) << "it was taken for a lock that nobody has used";
        return status ? Errc{} : status.error().code;
    }

    std::optional<tests::AsPlainUser> user_;
    std::unique_ptr<Store> store_;
    const Acquire holder_ = acquire_of("x", Credentials::random());
};

TEST_F(FileRights, WhatMayNotBeOpenedIsNotAbsent) {
    for (const fs::path& folder : {dir(), dir() / "locks", folder_of("x")}) {
        SCOPED_TRACE(folder);
        const WithMode closed(folder, 0);
        EXPECT_EQ(code_of_inspect(), Errc::denied);
        EXPECT_EQ(store_->history({.name = holder_.name}, Deadline::never()).error().code, Errc::denied);
        EXPECT_EQ(store_->list({}, Deadline::never()).error().code, Errc::denied);
        EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::denied);
    }
    for (const char* file : {"record", "guard"}) {
        SCOPED_TRACE(file);
        const WithMode closed(folder_of("x") / file, 0);
        EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::denied);
    }
    EXPECT_EQ(refused(*store_, acquire_of("x", Credentials::random())), Errc::lock_conflict);
}

TEST_F(FileRights, WhatMayNotBeWrittenIsFoundByTheExamination) {
    EXPECT_TRUE(finding("rights").ok && finding("records").ok);
    for (const fs::path& folder : {dir(), dir() / "locks"}) {
        const WithMode closed(folder, 0500);
        EXPECT_FALSE(finding("rights").ok) << folder;
        EXPECT_THAT(finding("rights").detail, HasSubstr(folder.string()));
    }
    const WithMode closed_folder(folder_of("x"), 0500);
    EXPECT_FALSE(finding("records").ok);
    EXPECT_THAT(finding("records").detail, HasSubstr(folder_of("x").string()));
}

TEST_F(FileRights, AGuardThatMayNotBeWrittenIsFoundByTheExamination) {
    const WithMode closed(folder_of("x") / "guard", 0400);
    EXPECT_FALSE(finding("records").ok);
    EXPECT_THAT(finding("records").detail, HasSubstr((folder_of("x") / "guard").string()));
    EXPECT_EQ(refused(*store_, holder_), Errc::denied);
}

// An administrator has made the folder for this user, in one that others may enter and not list.
TEST_F(FileRights, AStoreIsMadeBelowAFolderThatMayNotBeRead) {
    const fs::path above = root() / "above";
    fs::create_directories(above / "store");
    fs::permissions(above / "store", fs::perms{0700});
    const WithMode closed(above, 0100);
    const auto store = open_file_store(*base::Url::parse("file:" + (above / "store").string()), clock_);
    ASSERT_TRUE(store) << store.error().message;
    static_cast<void>(granted(**store, holder_));
}

TEST_F(FileRights, WhatBelongsToRootIsAsGoodAsOurs) {
    using base::FileFacts;
    const uid_t us = geteuid();
    const uid_t stranger = us + 1;
    const auto is_our_file = [](const FileFacts& facts) { return base::expect_our_file(facts, "x").has_value(); };
    const auto is_our_folder = [](const FileFacts& facts) { return base::expect_our_folder(facts, "x").has_value(); };
    for (const uid_t owner : {us, uid_t{0}}) {
        EXPECT_TRUE(is_our_file({.mode = S_IFREG | 0644, .owner = owner, .group = stranger}));
        EXPECT_TRUE(is_our_folder({.mode = S_IFDIR | 0755, .owner = owner, .group = stranger}));
        for (const mode_t others : {mode_t{0020}, mode_t{0002}}) {
            EXPECT_FALSE(is_our_file({.mode = S_IFREG | 0600 | others, .owner = owner}));
            EXPECT_FALSE(is_our_folder({.mode = S_IFDIR | 0700 | others, .owner = owner}));
        }
        for (const mode_t kind : {S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK, S_IFDIR})
            EXPECT_FALSE(is_our_file({.mode = kind | 0600, .owner = owner})) << std::oct << kind;
        for (const mode_t kind : {S_IFLNK, S_IFREG})
            EXPECT_FALSE(is_our_folder({.mode = kind | 0700, .owner = owner})) << std::oct << kind;
    }
    EXPECT_FALSE(is_our_file({.mode = S_IFREG | 0600, .owner = stranger}));
    EXPECT_FALSE(is_our_folder({.mode = S_IFDIR | 0700, .owner = stranger}));
}

using FilePlace = FileStoreTest;

TEST_F(FilePlace, BehindALinkIsLookedAtToo) {
    const fs::path open_to_all = root() / "open";
    fs::create_directory(open_to_all);
    ASSERT_EQ(chmod(open_to_all.c_str(), 0777), 0);
    fs::create_directory_symlink(open_to_all, root() / "link");
    const auto safe = base::expect_safe_place((root() / "link").string());
    ASSERT_FALSE(safe);
    EXPECT_EQ(safe.error().code, Errc::store_unsafe);
    ASSERT_EQ(chmod(open_to_all.c_str(), 0755), 0);
    EXPECT_TRUE(base::expect_safe_place((root() / "link").string()));
    EXPECT_TRUE(base::expect_safe_place((root() / "not/there").string()));
}

TEST_F(FilePlace, ThatAGroupCanWriteToIsSafeIfTheGroupIsTheOwnersAlone) {
    const fs::path place = root() / "place";
    fs::create_directory(place);
    if (chown(place.c_str(), static_cast<uid_t>(-1), geteuid()) != 0)
        GTEST_SKIP() << tests::not_here << "this user has no group of its own";
    ASSERT_EQ(chmod(place.c_str(), 0770), 0);
    EXPECT_TRUE(base::expect_safe_place(place.string()));
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "nothing can be given to another group";
    ASSERT_EQ(chown(place.c_str(), static_cast<uid_t>(-1), 12345), 0);
    // Changing the group can take rights away.
    ASSERT_EQ(chmod(place.c_str(), 0770), 0);
    const auto safe = base::expect_safe_place(place.string());
    ASSERT_FALSE(safe);
    EXPECT_THAT(safe.error().message, HasSubstr("group 12345"));
    ASSERT_EQ(chmod(place.c_str(), 01770), 0);
    EXPECT_TRUE(base::expect_safe_place(place.string()));
}

class FileWrites : public FileStoreTest {
protected:
    [[nodiscard]] Folder here() const { return Folder::open(root().string(), Sync::off).value().value(); }
    [[nodiscard]] static Bytes bytes(std::string_view text) { return {text.begin(), text.end()}; }
    [[nodiscard]] std::string text(const std::string& name) const { return content_of(root() / name); }
};

TEST_F(FileWrites, TheEndOfAFileIsReplacedAndWhatWasBehindItIsGone) {
    ASSERT_TRUE(here().write("log", bytes("0123456789")));
    ASSERT_TRUE(here().write_end("log", 4, bytes("abc")));
    EXPECT_EQ(text("log"), "0123abc");
    fs::create_hard_link(root() / "log", root() / "copy");
    ASSERT_TRUE(here().write_end("log", 2, bytes("xy")));
    EXPECT_EQ(text("log"), "01xy");
    EXPECT_EQ(text("copy"), "0123abc");
    fs::create_hard_link(root() / "log", root() / "another");
    const auto behind_the_end = here().write_end("log", 5, bytes("z"));
    ASSERT_FALSE(behind_the_end);
    EXPECT_EQ(behind_the_end.error().code, Errc::store_unavailable);
    EXPECT_EQ(text("log"), "01xy");
}

// What an interrupted writer has left can have a name in a copy, too, or be somebody else's trap.
TEST_F(FileWrites, WhatHasTheNameOfANewFileIsReplacedAndNotWrittenTo) {
    ASSERT_TRUE(here().write("elsewhere", bytes("precious")));
    fs::create_hard_link(root() / "elsewhere", root() / "record.tmp");
    ASSERT_TRUE(here().replace("record", bytes("new")));
    fs::create_symlink(root() / "elsewhere", root() / "record.tmp");
    ASSERT_TRUE(here().replace("record", bytes("newer")));
    EXPECT_EQ(text("record"), "newer");
    EXPECT_EQ(text("elsewhere"), "precious");
    EXPECT_FALSE(fs::exists(fs::symlink_status(root() / "record.tmp")));
}

TEST_F(FileWrites, NoMoreIsReadThanWasAskedFor) {
    const std::string long_text(10'000, 'l');
    ASSERT_TRUE(here().write("long", bytes(long_text)));
    for (const std::size_t limit : {0UL, 1UL, 4095UL, 4096UL, 4097UL, 9999UL, 10'000UL, 20'000UL})
        EXPECT_EQ(here().read("long", limit).value().value().size(), std::min<std::size_t>(limit, 10'000)) << limit;
    EXPECT_FALSE(here().read("absent", 1).value());
}

}  // namespace
}  // namespace holdfast::stores::file
