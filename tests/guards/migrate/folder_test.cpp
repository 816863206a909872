#include "guards/sql/migrate/folder.hpp"

#include <gmock/gmock.h>

namespace holdfast::guards::migrate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Files = std::map<std::string, std::string>;

std::vector<std::string> versions_of(const Folder& folder) {
    std::vector<std::string> versions;
    for (const MigrationFile& file : folder.versioned) versions.push_back(file.version);
    for (const MigrationFile& file : folder.repeatable) versions.push_back(file.version);
    return versions;
}

void expect_refused(const Files& files, const char* words) {
    const auto folder = folder_of("m", files);
    ASSERT_FALSE(folder) << words;
    EXPECT_EQ(folder.error().code, Errc::migration_failed);
    EXPECT_THAT(folder.error().message, HasSubstr(words));
}

TEST(FolderTest, FilesAreSortedByNumberAndRepeatableOnesComeLast) {
    const auto folder = folder_of("m", {{"10_b.sql", ""},
                                        {"2_a.sql", ""},
                                        {"20260101120000_c.sql", ""},
                                        {"R__views.sql", ""},
                                        {"R__a.sql", ""},
                                        {"README.md", ""}});
    EXPECT_THAT(versions_of(folder.value()), ElementsAre("2", "10", "20260101120000", "R__a", "R__views"));
}

TEST(FolderTest, ANumberIsTheSameWithZerosBeforeIt) {
    const auto folder = folder_of("m", {{"0007_create_users.sql", "x"}, {"0007_create_users.down.sql", "y"}});
    EXPECT_EQ(folder->versioned.front().version, "7");
    EXPECT_EQ(folder->versioned.front().name, "create_users");
    EXPECT_EQ(folder->down.at("7").text, "y");
    expect_refused({{"7_a.sql", ""}, {"007_b.sql", ""}}, "same number");
}

TEST(FolderTest, NamesThatNobodyCanReadAreRefused) {
    for (const char* name :
         {"a.sql", "1.sql", "1_.sql", "V1__a.sql", "1234567890123456789_a.sql", "R__.sql", "-1_a.sql"})
        expect_refused({{name, ""}}, "no name of");
    expect_refused({{"R__a.down.sql", ""}}, "repeatable");
    expect_refused({{"1_a.down.sql", ""}}, "no migration 1");
    expect_refused({{"1_a.sql", "\xff"}}, "UTF-8");
    expect_refused({{"1_a.sql", std::string("a\0b", 3)}}, "UTF-8");
}

TEST(FolderTest, LineEndsDoNotChangeAChecksum) {
    EXPECT_EQ(checksum_of("a\r\nb\rc\n"), checksum_of("a\nb\nc\n"));
    EXPECT_NE(checksum_of("a\n"), checksum_of("a"));
    // As sha256sum has it.
    EXPECT_EQ(checksum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(FolderTest, TheFirstLinesSayThatAFileHasNoTransaction) {
    const auto folder = folder_of("m", {{"1_a.sql", "\n-- about\n--holdfast\n-- holdfast: no-transaction\nSELECT 1;"},
                                        {"2_b.sql", "SELECT 1;\n-- holdfast: no-transaction\n"}});
    EXPECT_FALSE(folder->versioned[0].in_transaction);
    EXPECT_TRUE(folder->versioned[1].in_transaction);
    expect_refused({{"1_a.sql", "-- holdfast: no-transactoin\n"}}, "means nothing");
}

TEST(FolderTest, TheSumListsAllFilesAndChangesWithEach) {
    Files files{{"1_a.sql", "a"}, {"1_a.down.sql", "b"}, {"R__v.sql", "c"}};
    const std::string sum = sum_of(*folder_of("m", files));
    files["holdfast.sum"] = sum;
    EXPECT_TRUE(check_sum(*folder_of("m", files)));
    const auto refused = [](const Files& changed, const char* words) {
        const auto checked = check_sum(*folder_of("m", changed));
        ASSERT_FALSE(checked) << words;
        EXPECT_EQ(checked.error().code, Errc::migration_checksum);
        EXPECT_THAT(checked.error().message, HasSubstr(words));
    };
    Files more = files;
    more["2_c.sql"] = "d";
    refused(more, "2_c.sql is not listed");
    EXPECT_NE(sum_of(*folder_of("m", more)).substr(0, sum.find('\n')), sum.substr(0, sum.find('\n')))
        << "two branches must conflict in the first line";
    Files edited = files;
    edited["1_a.down.sql"] = "bb";
    refused(edited, "1_a.down.sql has another text");
    Files fewer = files;
    fewer.erase("R__v.sql");
    refused(fewer, "R__v.sql is listed and is not there");
    Files windows = files;
    windows["holdfast.sum"].replace(windows["holdfast.sum"].find('\n'), 1, "\r\n");
    EXPECT_TRUE(check_sum(*folder_of("m", windows)));
}

}  // namespace
}  // namespace holdfast::guards::migrate
