// Goal: an include that follows no arrow of docs/ARCHITECTURE.md fails the build.
// Method: read the #include lines of every file below include/ and src/. Because a checker that accepts
// everything would pass too, each rule is also shown a file that breaks it.

#include "tidy/arrows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

namespace holdfast::tidy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Complaints arrows_of(std::string path, std::string_view text) {
    return broken_arrows({made_up(std::move(path), text)});
}

struct Arrow {
    std::string_view from;
    std::string_view header;
};

void PrintTo(const Arrow& arrow, std::ostream* out) { *out << arrow.from << " -> " << arrow.header; }

class ForbiddenArrow : public testing::TestWithParam<Arrow> {};

TEST_P(ForbiddenArrow, IsReportedWithItsLine) {
    const auto [from, header] = GetParam();
    const std::string text = "#pragma once\n#include \"" + std::string(header) + "\"\n";
    EXPECT_THAT(arrows_of(std::string(from), text), ElementsAre(HasSubstr(std::string(from) + ":2")));
}

INSTANTIATE_TEST_SUITE_P(
    Arrows, ForbiddenArrow,
    testing::Values(Arrow{"include/holdfast/a.hpp", "values/text.hpp"}, Arrow{"src/values/a.cpp", "base/url.hpp"},
                    Arrow{"src/values/a.cpp", "kernel/step.hpp"}, Arrow{"src/kernel/a.cpp", "base/fd.hpp"},
                    Arrow{"src/kernel/a.cpp", "stores/file/file_store.hpp"}, Arrow{"src/base/a.cpp", "kernel/step.hpp"},
                    Arrow{"src/stores/file/a.cpp", "stores/sqlite/sqlite_store.hpp"},
                    Arrow{"src/stores/file/a.cpp", "client/waiter.hpp"},
                    Arrow{"src/stores/file/a.cpp", "json/value.hpp"},
                    Arrow{"src/stores/retrying_store.cpp", "stores/file/file_store.hpp"},
                    Arrow{"src/stores/open_store.cpp", "client/waiter.hpp"},
                    Arrow{"src/client/a.cpp", "stores/memory/memory_store.hpp"},
                    Arrow{"src/client/a.cpp", "guards/run/child.hpp"}, Arrow{"src/json/a.cpp", "kernel/record.hpp"},
                    Arrow{"src/guards/run/a.cpp", "guards/sql/fence.hpp"},
                    Arrow{"src/guards/run/a.cpp", "kernel/step.hpp"},
                    Arrow{"src/guards/shared.cpp", "guards/run/child.hpp"}, Arrow{"src/config/a.cpp", "cli/option.hpp"},
                    Arrow{"src/config/a.cpp", "kernel/step.hpp"}, Arrow{"src/client/a.cpp", "config/settings.hpp"},
                    Arrow{"src/cli/a.cpp", "kernel/step.hpp"}, Arrow{"src/cli/a.cpp", "stores/file/file_store.hpp"},
                    Arrow{"src/cli/a.cpp", "stores/module.hpp"}, Arrow{"src/client/a.cpp", "stores/open_store.hpp"},
                    Arrow{"src/cli/a.cpp", "server/api.hpp"}, Arrow{"src/server/a.cpp", "cli/report.hpp"},
                    Arrow{"src/server/a.cpp", "kernel/step.hpp"}, Arrow{"src/guards/run/a.cpp", "cli/report.hpp"}));

class AllowedArrow : public testing::TestWithParam<Arrow> {};

TEST_P(AllowedArrow, IsNotReported) {
    const auto [from, header] = GetParam();
    EXPECT_THAT(arrows_of(std::string(from), "#include \"" + std::string(header) + "\"\n"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Arrows, AllowedArrow,
    testing::Values(Arrow{"include/holdfast/a.hpp", "holdfast/lease.hpp"}, Arrow{"src/kernel/a.cpp", "values/text.hpp"},
                    Arrow{"src/stores/file/a.cpp", "stores/file/layout.hpp"},
                    Arrow{"src/stores/file/a.cpp", "kernel/step.hpp"},
                    Arrow{"src/stores/open_store.cpp", "stores/sqlite/sqlite_store.hpp"},
                    Arrow{"src/guards/run/a.cpp", "guards/shared.hpp"}, Arrow{"src/cli/a.cpp", "guards/run/child.hpp"},
                    Arrow{"src/cli/a.cpp", "config/settings.hpp"}, Arrow{"src/server/a.cpp", "config/settings.hpp"},
                    Arrow{"src/cli/a.cpp", "stores/open_store.hpp"}, Arrow{"src/cli/a.cpp", "server/serve.hpp"},
                    Arrow{"src/server/a.cpp", "json/value.hpp"}));

TEST(DependencyRule, IsKeptByEveryFile) {
    const auto files = sources_below({"include", "src"}, {".hpp", ".cpp"});
    ASSERT_THAT(files, SizeIs(testing::Gt(20)));
    EXPECT_THAT(broken_arrows(files), IsEmpty());
    EXPECT_THAT(escaped_libraries(files), IsEmpty());
}

TEST(DependencyRule, AFolderThatNoRuleKnowsIsReported) {
    EXPECT_THAT(arrows_of("src/util/a.cpp", ""), ElementsAre(HasSubstr("util")));
}

TEST(DependencyRule, HeadersAreNamedFromTheRootOfSrc) {
    EXPECT_THAT(arrows_of("src/kernel/a.cpp", "#include \"step.hpp\"\n"), SizeIs(1));
    EXPECT_THAT(arrows_of("src/kernel/a.cpp", "#include \"../kernel/step.hpp\"\n"), SizeIs(1));
    EXPECT_THAT(arrows_of("src/kernel/a.cpp", "#include <holdfast/lease.hpp>\n"), SizeIs(1));
}

TEST(DependencyRule, BlanksAroundTheDirectiveHideNothing) {
    EXPECT_THAT(arrows_of("src/kernel/a.cpp", "  #  include  \"base/fd.hpp\"\n"), SizeIs(1));
}

TEST(Libraries, SqliteStaysInItsStore) {
    EXPECT_THAT(escaped_libraries({made_up("src/stores/sqlite/a.cpp", "#include <sqlite3.h>\n")}), IsEmpty());
    EXPECT_THAT(escaped_libraries({made_up("src/stores/file/a.cpp", "#include <sqlite3.h>\n")}), SizeIs(1));
    EXPECT_THAT(escaped_libraries({made_up("src/stores/mysql/a.cpp", "#include <libpq-fe.h>\n")}), SizeIs(1));
    EXPECT_THAT(escaped_libraries({made_up("src/cli/a.cpp", "#include <curl/curl.h>\n")}), SizeIs(1));
}

TEST(Libraries, BoostStaysInJsonAndTheServer) {
    EXPECT_THAT(escaped_libraries({made_up("src/json/a.cpp", "#include <boost/json.hpp>\n")}), IsEmpty());
    EXPECT_THAT(escaped_libraries({made_up("src/cli/a.cpp", "#include <boost/json.hpp>\n")}), SizeIs(1));
}

TEST(Libraries, OneFileKnowsTheConfigurationParser) {
    for (const std::string_view header : {"toml++/toml.h", "toml.hpp"}) {
        const std::string text = "#include <" + std::string(header) + ">\n";
        EXPECT_THAT(escaped_libraries({made_up("src/config/a.cpp", text)}), IsEmpty());
        EXPECT_THAT(escaped_libraries({made_up("src/config/a.cpp", text), made_up("src/config/b.cpp", text)}),
                    SizeIs(1));
        EXPECT_THAT(escaped_libraries({made_up("src/cli/a.cpp", text)}), SizeIs(1));
    }
}

TEST(Libraries, PublicHeadersNeedTheStandardLibraryOnly) {
    EXPECT_THAT(escaped_libraries({made_up("include/holdfast/a.hpp", "#include <string_view>\n")}), IsEmpty());
    EXPECT_THAT(escaped_libraries({made_up("include/holdfast/a.hpp", "#include <fmt/format.h>\n")}), SizeIs(1));
    EXPECT_THAT(escaped_libraries({made_up("include/holdfast/a.hpp", "#include <unistd.h>\n")}), SizeIs(1));
}

}  // namespace
}  // namespace holdfast::tidy
