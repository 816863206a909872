// Goal: no example in README.md and docs/ is wrong. Method: every shell block runs against the real command,
// every quoted piece of code is found in a file that is built, and every link leads to a file that is there.
// A block whose marking says none of this fails the test, so that an example cannot slip past by accident.

#include "docs/markdown.hpp"
#include "docs/session.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace holdfast::docs {
namespace {

namespace fs = std::filesystem;

const fs::path root = HOLDFAST_SOURCE_DIR;
const fs::path binary = HOLDFAST_BINARY;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// README.md and docs/**/*.md, relative to the root.
std::vector<fs::path> pages() {
    std::vector<fs::path> found{"README.md"};
    for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
        if (entry.path().extension() == ".md") found.push_back(fs::relative(entry.path(), root));
    std::ranges::sort(found);
    return found;
}

struct Counts {
    int ran = 0;
    int quoted = 0;
    int not_run = 0;
};

Counts& total() {
    static Counts counts;
    return counts;
}

/// Prints the sum when all pages are through.
class Sum final : public testing::Environment {
public:
    void TearDown() override {
        fmt::print("examples: {} ran, {} quoted from built files, {} not run\n", total().ran, total().quoted,
                   total().not_run);
    }
};
const auto* const sum = testing::AddGlobalTestEnvironment(new Sum);

class Page : public testing::TestWithParam<fs::path> {
protected:
    void check(const Block& block) {
        const std::string where = fmt::format("{}:{}", GetParam().string(), block.line);
        switch (marking_of(block.info)) {
            case Marking::run_script:
                ++counts_.ran;
                expect_fine(where, Sandbox(binary).run_script(block.lines));
                break;
            case Marking::run_session:
                ++counts_.ran;
                expect_fine(where, Sandbox(binary).run_session(block.lines));
                break;
            case Marking::quoted_code:
                ++counts_.quoted;
                EXPECT_TRUE(is_part_of(block.lines, read_file(root / argument_of(block.info))))
                    << where << ": these lines are not in " << argument_of(block.info);
                break;
            case Marking::not_run:
                ++counts_.not_run;
                fmt::print("{}: not run: {}\n", where, argument_of(block.info));
                break;
            case Marking::unknown: ADD_FAILURE() << where << ": unknown marking \"" << block.info << '"'; break;
            case Marking::only_shown: break;
        }
    }

    Counts counts_;

private:
    static void expect_fine(const std::string& where, const std::string& problem) {
        EXPECT_TRUE(problem.empty()) << where << ": " << problem;
    }
};

TEST_P(Page, DoesWhatItsExamplesSay) {
    const auto blocks = blocks_of(read_file(root / GetParam()));
    ASSERT_TRUE(blocks) << GetParam() << " has a code block that is never closed";
    for (const Block& block : *blocks) check(block);
    fmt::print("{}: {} ran, {} quoted, {} not run\n", GetParam().string(), counts_.ran, counts_.quoted,
               counts_.not_run);
    total().ran += counts_.ran;
    total().quoted += counts_.quoted;
    total().not_run += counts_.not_run;
}

// A change of the notation, or of where the pages are, must not turn the test above into one of nothing.
TEST(Documentation, HasExamplesThatRun) {
    int examples = 0;
    for (const fs::path& page : pages()) {
        const auto blocks = blocks_of(read_file(root / page));
        ASSERT_TRUE(blocks) << page;
        examples += static_cast<int>(std::ranges::count_if(*blocks, [](const Block& block) {
            const Marking marking = marking_of(block.info);
            return marking == Marking::run_script || marking == Marking::run_session;
        }));
    }
    EXPECT_GT(examples, 0);
}

TEST_P(Page, LinksOnlyToFilesThatExist) {
    const fs::path folder = (root / GetParam()).parent_path();
    for (const std::string& link : links_of(read_file(root / GetParam())))
        EXPECT_TRUE(fs::exists(folder / link)) << GetParam() << " links to " << link;
}

std::string name_of_page(const testing::TestParamInfo<fs::path>& page) {
    std::string name = page.param.string();
    std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Docs, Page, testing::ValuesIn(pages()), name_of_page);

}  // namespace
}  // namespace holdfast::docs
