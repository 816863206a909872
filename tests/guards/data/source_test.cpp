// The files of a table: which are read, and which are refused.
#include "guards/sql/data/source.hpp"

#include "guards/sql/data/catalog.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace holdfast::tests {
namespace {

namespace data = guards::data;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SourceTest : public testing::Test {
protected:
    void file(const std::string& name, std::string_view text) const {
        fs::create_directories((folder_.path() / "data" / name).parent_path());
        std::ofstream(folder_.path() / "data" / name, std::ios::binary) << text;
    }
    [[nodiscard]] Result<std::string> check() const {
        const auto source = data::Source::open((folder_.path() / "data").string(), {{.name = "t", .key = {}}});
        if (!source) return std::unexpected(source.error());
        return source->check();
    }
    [[nodiscard]] std::string refusal() const {
        const auto checked = check();
        if (!checked) {
            EXPECT_EQ(checked.error().code, Errc::data_invalid);
        }
        return checked ? "accepted" : checked.error().message;
    }

    TempFolder folder_;
};

TEST_F(SourceTest, FilesAreReadByNameAndBroughtIntoOneOrderOfColumns) {
    file("t/b.csv", "y,x\n2,1\n");
    file("t/a.yaml", "- x: 3\n  y: ~\n");
    file("t/README.md", "not data");
    file("t/.hidden.csv", "not, data\n");
    const auto source = data::Source::open((folder_.path() / "data").string(), {{.name = "t", .key = {}}});
    ASSERT_TRUE(source) << source.error().message;
    std::vector<std::string> rows;
    const auto visit = [&](const data::SourceRow& row) -> Result<void> {
        std::string text = row.file->name + ":" + std::to_string(row.line);
        for (const auto& cell : row.cells) text += "|" + std::string(cell.value_or("NULL"));
        rows.push_back(text);
        return {};
    };
    Sha256 digest;
    ASSERT_TRUE(source->read(source->tables().front(), visit, digest));
    EXPECT_THAT(rows, ElementsAre("a.yaml:1|3|NULL", "b.csv:2|1|2"));
    EXPECT_THAT(source->place_of(source->tables().front(), 1), testing::EndsWith("t/b.csv:2"));
}

TEST_F(SourceTest, TheDigestChangesWithEveryByteAndName) {
    file("t/a.csv", "x\n1\n");
    const std::string before = check().value();
    EXPECT_EQ(check().value(), before);
    file("t/a.csv", "x\r\n1\n");
    EXPECT_NE(check().value(), before);
    file("t/a.csv", "x\n1\n");
    fs::rename(folder_.path() / "data/t/a.csv", folder_.path() / "data/t/b.csv");
    EXPECT_NE(check().value(), before);
}

TEST_F(SourceTest, AllFilesOfATableHaveTheSameColumns) {
    file("t/a.csv", "x,y\n1,2\n");
    file("t/b.csv", "x\n1\n");
    EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("t/b.csv:1: the column \"y\" is missing"), HasSubstr("t/a.csv")));
    file("t/b.csv", "x,y,z\n1,2,3\n");
    EXPECT_THAT(refusal(), HasSubstr("t/b.csv:1: the column \"z\" is not in"));
}

TEST_F(SourceTest, TextIsUtf8WithoutNul) {
    using namespace std::string_literals;
    file("t/a.csv", "x\n1\na\0b\n"s);
    EXPECT_THAT(refusal(), HasSubstr("t/a.csv:3: a NUL character"));
    file("t/a.csv", "x\n\xff\n");
    EXPECT_THAT(refusal(), HasSubstr("t/a.csv:2: the text is not UTF-8"));
    file("t/a.csv", "x\n\xc3");
    EXPECT_THAT(refusal(), HasSubstr("t/a.csv:2: the text is not UTF-8")) << "half a character at the end";
    file("t/a.csv", "\xff\xfex\0\n\0"s);
    EXPECT_THAT(refusal(), HasSubstr("t/a.csv:1: ")) << "UTF-16";
    fs::remove(folder_.path() / "data/t/a.csv");
    file("t/a.yaml", "- x: 1\n- x: \xe2\x28\xa1\n");
    EXPECT_THAT(refusal(), HasSubstr("t/a.yaml:2: the text is not UTF-8"));
}

TEST_F(SourceTest, ACharacterAcrossTwoReadingsIsWhole) {
    // A reading has 256 KiB.
    for (std::size_t before = 262'140; before < 262'146; ++before) {
        file("t/a.csv", "x\n" + std::string(before, 'a') + "\xf0\x9f\x90\x98\n");
        EXPECT_TRUE(check()) << before;
    }
}

TEST_F(SourceTest, AFileThatWouldBePassedOverIsRefused) {
    file("t/a.csv", "x\n1\n");
    for (const char* name : {"t/b.yml", "t/b.CSV", "t/b.Yaml"}) {
        file(name, "");
        EXPECT_THAT(refusal(), HasSubstr("data files end in .csv or .yaml")) << name;
        fs::remove(folder_.path() / "data" / name);
    }
}

TEST_F(SourceTest, AFolderWithoutFilesIsRefused) {
    EXPECT_THAT(refusal(), HasSubstr("there is no such folder"));
    file("other/a.csv", "x\n");
    EXPECT_THAT(refusal(), HasSubstr("data/t: there is no such file or folder"));
    file("t/README.md", "");
    EXPECT_THAT(refusal(), HasSubstr("there is no .csv and no .yaml file"));
}

TEST_F(SourceTest, LinksLeadNowhereOutsideOfTheFolder) {
    const fs::path inside = folder_.path() / "data/t";
    std::ofstream(folder_.path() / "secret") << "x\nsecret\n";
    file("..data/a.csv", "x\n1\n");
    fs::create_directories(inside);
    fs::create_symlink("../..data/a.csv", inside / "a.csv");
    EXPECT_TRUE(check()) << "as mounted configuration of a cluster has them: " << refusal();
    fs::create_symlink("../../secret", inside / "b.csv");
    EXPECT_THAT(refusal(), HasSubstr("b.csv: a symbolic link that leads out"));
    fs::remove(inside / "b.csv");
    fs::create_symlink(folder_.path() / "data/..data/a.csv", inside / "b.csv");
    EXPECT_THAT(refusal(), HasSubstr("b.csv: a symbolic link that leads out")) << "an absolute one";
    fs::remove(inside / "b.csv");
    fs::create_symlink("b.csv", inside / "b.csv");
    EXPECT_THAT(refusal(), HasSubstr("b.csv: a symbolic link")) << "to itself";
    fs::remove_all(inside);
    fs::create_directory_symlink("/etc", inside);
    EXPECT_THAT(refusal(), HasSubstr("data/t: a symbolic link that leads out"));
}

TEST_F(SourceTest, APipeStopsNobody) {
    file("t/a.csv", "x\n1\n");
    ASSERT_EQ(mkfifo((folder_.path() / "data/t/b.csv").c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("b.csv: this is no regular file"));
}

TEST(ParentsFirstTest, TablesComeBehindThoseThatTheyReferTo) {
    const std::vector<std::string> names{"a", "b", "c"};
    EXPECT_THAT(data::parents_first(names, {{0, 1, false}, {1, 2, false}}).value(), ElementsAre(2U, 1U, 0U));
    EXPECT_THAT(data::parents_first(names, {}).value(), ElementsAre(0U, 1U, 2U));
    const auto circle = data::parents_first(names, {{0, 1, false}, {1, 0, false}});
    ASSERT_FALSE(circle);
    EXPECT_EQ(circle.error().code, Errc::config);
    EXPECT_THAT(circle.error().message, HasSubstr("a, b refer to each other"));
    EXPECT_THAT(data::parents_first(names, {{0, 1, false}, {1, 0, true}}).value(), ElementsAre(2U, 1U, 0U));
}

}  // namespace
}  // namespace holdfast::tests
