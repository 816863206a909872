// Goal: no lock name leads out of the store's folder, and no two share one.
// Method: names that were a problem elsewhere, then every byte in every position of short names.

#include "file_fixture.hpp"

#include <algorithm>
#include <set>

namespace holdfast::stores::file {
namespace {

const std::vector<std::string> hostile_names{"...",
                                             "..x",
                                             "..%2fx",
                                             "/etc/passwd",
                                             "a/...b",
                                             "a//b",
                                             "a/",
                                             "/",
                                             "~",
                                             "CON",
                                             "con",
                                             "nul.txt",
                                             "a.",
                                             "a ",
                                             " a",
                                             "A",
                                             "a",
                                             "aA",
                                             "AA",
                                             "%2e%2e",
                                             "%",
                                             "%61",
                                             "-rf",
                                             "--",
                                             "*",
                                             "?",
                                             "a\\b",
                                             "C:\\x",
                                             "\"",
                                             "'",
                                             "$(id)",
                                             "`id`",
                                             ";",
                                             "|",
                                             "n.a",
                                             "h.a",
                                             "\xc3\xa9"
                                             "tat",
                                             "e\xcc\x81"
                                             "tat",  // one word composed and decomposed
                                             std::string(255, 'x'),
                                             std::string(255, 'X'),
                                             std::string(254, 'x'),
                                             std::string(100, '.'),
                                             std::string(64, '/'),
                                             std::string(198, 'y'),
                                             std::string(199, 'y')};

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

TEST(FileNames, StayInsideTheirFolderAndWithinTheLimitsOfFileSystems) {
    for (const std::string& text : hostile_names) {
        const std::string folder = folder_name(lock_name(text));
        EXPECT_LE(folder.size(), 200U) << text;
        EXPECT_EQ(folder.find('/'), std::string::npos) << text;
        EXPECT_EQ(folder.find('.', 2), std::string::npos) << text;
        EXPECT_TRUE(is_folder_name(folder)) << text;
    }
}

TEST(FileNames, DifferEvenWhereCaseIsFolded) {
    std::set<std::string> folders;
    for (const std::string& text : hostile_names)
        EXPECT_TRUE(folders.insert(lower(folder_name(lock_name(text)))).second) << text;
}

TEST(FileNames, DifferForAllShortNames) {
    std::set<std::string> folders;
    std::size_t names = 0;
    for (int first = 0x20; first < 0x7f; ++first)
        for (int second = 0x1f; second < 0x7f; ++second) {
            std::string text(1, static_cast<char>(first));
            if (second > 0x1f) text += static_cast<char>(second);
            const auto name = LockName::parse(text);
            if (!name) continue;
            ++names;
            folders.insert(lower(folder_name(*name)));
        }
    EXPECT_GT(names, 9000U);
    EXPECT_EQ(folders.size(), names);
}

TEST(FileNames, CanBeReadFromTheirFolders) {
    for (const std::string& text : hostile_names) {
        const std::string folder = folder_name(lock_name(text));
        const auto expected = folder.starts_with("h.") ? std::nullopt : std::optional(text);
        EXPECT_EQ(name_in(folder), expected) << folder;
    }
    for (const char* folder : {"x.a", "n.A", "n.%", "n.%2", "n.%2g", "n.a.b", "n.a/b"})
        EXPECT_EQ(name_in(folder), std::nullopt) << folder;
}

TEST_F(FileStoreTest, HostileNamesAreLocksOfTheirOwn) {
    const auto store = open();
    for (const std::string& text : hostile_names) {
        const auto outcome = granted(*store, acquire_of(text, Credentials::random()));
        EXPECT_EQ(outcome.lock.name.text(), text);
    }
    const auto all = store->list({}, Deadline::never());
    ASSERT_TRUE(all);
    std::vector<std::string> listed;
    for (const LockStatus& status : *all) listed.push_back(status.name.text());
    std::vector<std::string> expected = hostile_names;
    std::ranges::sort(expected);
    EXPECT_EQ(listed, expected);
    // Nothing but the store itself has appeared.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root()), {}), 1);
}

TEST_F(FileStoreTest, ListsByPrefixInByteOrder) {
    const auto store = open();
    for (const char* name : {"b", "a/2", "a/10", "A/1"})
        static_cast<void>(granted(*store, acquire_of(name, Credentials::random())));
    const auto found = store->list({.prefix = "a/"}, Deadline::never());
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 2U);
    EXPECT_EQ(found->at(0).name.text(), "a/10");
    EXPECT_EQ(found->at(1).name.text(), "a/2");
}

// The names of their folders do not say what they are called.
TEST_F(FileStoreTest, LongNamesAreListedAmongTheOthersByPrefixAndPageByPage) {
    const auto store = open();
    const std::string tail(240, 'y');
    const std::vector<std::string> names{"a/1", "a/1" + tail, "a/2", "a/2" + tail, "b/" + tail};
    for (const std::string& name : names) static_cast<void>(granted(*store, acquire_of(name, Credentials::random())));
    const auto listed = [&](const ListQuery& query) {
        std::vector<std::string> found;
        const auto locks = store->list(query, Deadline::never());
        EXPECT_TRUE(locks);
        if (!locks) return found;
        for (const LockStatus& status : *locks) found.push_back(status.name.text());
        return found;
    };
    const auto some = [&](std::size_t first, std::size_t count) {
        const auto begin = names.begin() + static_cast<std::ptrdiff_t>(first);
        return std::vector(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    EXPECT_EQ(listed({}), names);
    EXPECT_EQ(listed({.prefix = "a/"}), some(0, 4));
    EXPECT_EQ(listed({.prefix = "a/2y"}), some(3, 1));
    EXPECT_EQ(listed({.prefix = "a/", .after = names[1]}), some(2, 2));
    EXPECT_EQ(listed({.after = names[0], .limit = 2}), some(1, 2));
    EXPECT_EQ(listed({.after = names[4]}), some(0, 0));
}

}  // namespace
}  // namespace holdfast::stores::file
