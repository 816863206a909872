// Goal: a manifest gives back what was put in, and one that was changed in any byte is refused.
#include "guards/worktree/manifest.hpp"

#include "guards/worktree/files.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

namespace holdfast::guards::worktree {
namespace {

Entry entry(const std::string& path, Kind kind) {
    Entry entry;
    entry.path = path;
    entry.kind = kind;
    entry.mode = 0640;
    entry.owner = 1000;
    entry.mtime = {-5, 999'999'999};
    entry.identity = {2049, 77, {1'700'000'000, 1}};
    if (kind == Kind::file) {
        entry.size = 12345;
        entry.hash.fill(0xab);
        entry.attributes = {{"user.a", std::string("\0x", 2)}, {"user.b", ""}};
    }
    if (kind == Kind::symlink || kind == Kind::hard_link) entry.target = "else/where";
    return entry;
}

std::vector<Entry> entries() {
    std::vector<Entry> all{entry("", Kind::folder),    entry("a", Kind::folder),  entry("a/b", Kind::file),
                           entry("a.txt", Kind::file), entry("l", Kind::symlink), entry("s", Kind::socket),
                           entry("z", Kind::hard_link)};
    all[3].is_racy = true;
    all[1].hides_others = true;
    return all;
}

class Manifest : public testing::Test {
protected:
    Manifest() : fd_(*open_folder(folder_.path().string())) {}

    ManifestTotals write(const std::vector<Entry>& all) {
        auto writer = ManifestWriter::create(fd_.get(), "manifest");
        EXPECT_TRUE(writer);
        for (const Entry& each : all) EXPECT_TRUE(writer->add(each));
        return *writer->finish();
    }

    Result<std::vector<Entry>> read() {
        auto reader = ManifestReader::open(fd_.get(), "manifest");
        if (!reader) return std::unexpected(reader.error());
        std::vector<Entry> all;
        for (;;) {
            auto next = reader->next();
            if (!next) return std::unexpected(next.error());
            if (!*next) break;
            all.push_back(**next);
        }
        totals_ = reader->totals();
        return all;
    }

    tests::TempFolder folder_;
    Fd fd_;
    ManifestTotals totals_{};
};

TEST_F(Manifest, GivesBackWhatWasPutIn) {
    const auto written = write(entries());
    const auto all = read();
    ASSERT_TRUE(all) << all.error().message;
    const auto expected = entries();
    ASSERT_EQ(all->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ((*all)[i].path, expected[i].path);
        EXPECT_TRUE((*all)[i].has_same_metadata(expected[i])) << expected[i].path;
        EXPECT_EQ((*all)[i].hash, expected[i].hash);
        EXPECT_EQ((*all)[i].identity, expected[i].identity);
        EXPECT_EQ((*all)[i].is_racy, expected[i].is_racy);
        EXPECT_EQ((*all)[i].hides_others, expected[i].hides_others);
    }
    EXPECT_EQ(totals_.root_hash, written.root_hash);
    EXPECT_EQ(totals_.file_hash, written.file_hash);
    EXPECT_EQ(written.files, 2U);
    EXPECT_EQ(written.bytes, 2U * 12345);
    EXPECT_EQ(written.special, 1U);
}

TEST_F(Manifest, IsAsLongAsTheTreeNeeds) {
    std::vector<Entry> all{entry("", Kind::folder)};
    for (int i = 10000; i < 30000; ++i) all.push_back(entry("name-" + std::to_string(i), Kind::file));
    write(all);
    const auto back = read();
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->size(), all.size());
}

TEST_F(Manifest, TheRootHashIsOfWhatASnapshotHoldsAndNotOfWhereItWasRead) {
    const auto first = write(entries());
    unlinkat(fd_.get(), "manifest", 0);
    auto moved = entries();
    for (Entry& each : moved) each.identity.inode += 1;
    EXPECT_EQ(write(moved).root_hash, first.root_hash);
    unlinkat(fd_.get(), "manifest", 0);
    moved[2].mode = 0600;
    EXPECT_NE(write(moved).root_hash, first.root_hash);
}

TEST_F(Manifest, OneThatWasChangedInAnyByteIsRefused) {
    write(entries());
    const auto path = folder_.path() / "manifest";
    std::ifstream in(path, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string changed = whole;
        changed[i] = static_cast<char>(changed[i] ^ 0x41);
        std::ofstream(path, std::ios::binary) << changed;
        const auto refused = read();
        ASSERT_FALSE(refused) << "byte " << i;
        EXPECT_TRUE(refused.error().code == Errc::payload_hash_mismatch ||
                    refused.error().code == Errc::format_unsupported);
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
        std::ofstream(path, std::ios::binary) << whole.substr(0, size);
        EXPECT_FALSE(read()) << "cut to " << size;
    }
    std::ofstream(path, std::ios::binary) << whole << 'x';
    EXPECT_FALSE(read());
}

TEST(EntryOrder, IsThatOfAWalk) {
    std::vector<std::string> paths{"b", "a.txt", "a/b/c", "a", "a/b", "", "a-b"};
    std::ranges::sort(paths, comes_before);
    EXPECT_EQ(paths, (std::vector<std::string>{"", "a", "a/b", "a/b/c", "a-b", "a.txt", "b"}));
}

}  // namespace
}  // namespace holdfast::guards::worktree
