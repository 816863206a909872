// Goal: a copy has the same bytes, holes and metadata, and its hash is that of the content.
#include "guards/worktree/copy_file.hpp"

#include "guards/worktree/files.hpp"
#include "guards/worktree/walker.hpp"
#include "support/temp_folder.hpp"
#include "values/sha256.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

class CopyFile : public testing::Test {
protected:
    CopyFile() : root_(*open_folder(folder_.path().string())) {}

    Fd open_for_reading(const std::string& name) { return Fd(openat(root_.get(), name.c_str(), O_RDONLY | O_CLOEXEC)); }
    std::string text_of(const std::string& name) {
        std::ifstream in(folder_.path() / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    FileCopier::Copied copy(const std::string& from, const std::string& to, std::uint64_t size) {
        const Fd source = open_for_reading(from);
        const Fd target(*create_file(root_.get(), to, to));
        const auto copied = copier_.copy(source.get(), target.get(), size, from);
        EXPECT_TRUE(copied);
        return *copied;
    }

    tests::TempFolder folder_;
    Fd root_;
    CopyFacts facts_;
    FileCopier copier_{facts_};
};

Digest hash_of(const std::string& text) {
    return sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST_F(CopyFile, HasTheSameBytesAndTheirHash) {
    for (const std::size_t size : {0UL, 1UL, 4096UL, (1UL << 18) - 1, (1UL << 18) + 1, 1UL << 20}) {
        std::string text(size, 'a');
        for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
        std::ofstream(folder_.path() / "from", std::ios::binary) << text;
        const auto copied = copy("from", "to", size);
        EXPECT_EQ(copied.size, size);
        EXPECT_TRUE(copied.is_equal);
        EXPECT_EQ(copied.hash, hash_of(text));
        EXPECT_EQ(text_of("to"), text);
        unlinkat(root_.get(), "to", 0);
    }
}

TEST_F(CopyFile, KeepsHolesAndHashesThemAsZeros) {
    constexpr off_t size = 8 << 20;
    std::string expected(size, '\0');
    {
        const Fd file(openat(root_.get(), "from", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        ASSERT_EQ(ftruncate(file.get(), size), 0);
        ASSERT_EQ(pwrite(file.get(), "mid", 3, size / 2), 3);
    }
    expected.replace(size / 2, 3, "mid");
    const auto copied = copy("from", "to", size);
    EXPECT_EQ(copied.size, static_cast<std::uint64_t>(size));
    EXPECT_EQ(copied.hash, hash_of(expected));
    EXPECT_EQ(text_of("to"), expected);
    struct stat from{};
    struct stat to{};
    ASSERT_EQ(fstatat(root_.get(), "from", &from, 0), 0);
    ASSERT_EQ(fstatat(root_.get(), "to", &to, 0), 0);
    EXPECT_EQ(to.st_size, size);
    EXPECT_LE(to.st_blocks, from.st_blocks + 64);
}

TEST_F(CopyFile, OfAFileThatIsShorterThanExpectedSaysSo) {
    std::ofstream(folder_.path() / "from") << "short";
    EXPECT_EQ(copy("from", "to", 100).size, 5U);
}

TEST_F(CopyFile, GetsModeTimeAndAttributes) {
    std::ofstream(folder_.path() / "from") << "x";
    ASSERT_EQ(fchmodat(root_.get(), "from", 04751, 0), 0);
    const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000, 123}};
    ASSERT_EQ(utimensat(root_.get(), "from", times, 0), 0);
    const Fd source = open_for_reading("from");
    const bool has_attributes = fsetxattr(source.get(), "user.note", "hello", 5, 0) == 0;
    struct stat facts{};
    ASSERT_EQ(fstat(source.get(), &facts), 0);
    Entry entry = entry_of(facts);
    entry.attributes = *attributes_of(source.get(), "from");
    const Fd target(*create_file(root_.get(), "to", "to"));
    const auto applied = apply_metadata(target.get(), entry);
    ASSERT_TRUE(applied) << applied.error().message;
    struct stat copy{};
    ASSERT_EQ(fstat(target.get(), &copy), 0);
    EXPECT_EQ(copy.st_mode, facts.st_mode);
    EXPECT_EQ(moment_of(copy.st_mtim), (Moment{1'000'000, 123}));
    EXPECT_EQ(*attributes_of(target.get(), "to"), has_attributes ? (Attributes{{"user.note", "hello"}}) : Attributes());
}

TEST_F(CopyFile, LinksAndFifosAreMadeAndNotFollowed) {
    Entry link;
    link.kind = Kind::symlink;
    link.target = "/nowhere/at all";
    link.owner = geteuid();
    link.group = getegid();
    link.mtime = {5, 6};
    ASSERT_TRUE(make_other(root_.get(), "l", link));
    EXPECT_EQ(*target_of(root_.get(), "l"), link.target);
    struct stat facts{};
    ASSERT_EQ(fstatat(root_.get(), "l", &facts, AT_SYMLINK_NOFOLLOW), 0);
    EXPECT_EQ(moment_of(facts.st_mtim), (Moment{5, 6}));
    Entry fifo = link;
    fifo.kind = Kind::fifo;
    fifo.mode = 0622;
    ASSERT_TRUE(make_other(root_.get(), "p", fifo));
    ASSERT_EQ(fstatat(root_.get(), "p", &facts, AT_SYMLINK_NOFOLLOW), 0);
    EXPECT_EQ(facts.st_mode, static_cast<mode_t>(S_IFIFO | 0622));
}

TEST_F(CopyFile, StopsWhenItIsAskedTo) {
    std::ofstream(folder_.path() / "from") << "x";
    std::stop_source stop;
    stop.request_stop();
    FileCopier copier(facts_, stop.get_token());
    const Fd source = open_for_reading("from");
    EXPECT_FALSE(copier.hash(source.get(), 1, "from"));
}

}  // namespace
}  // namespace holdfast::guards::worktree
