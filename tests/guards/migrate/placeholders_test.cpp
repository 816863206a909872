#include "guards/sql/migrate/placeholders.hpp"

#include <gmock/gmock.h>

#include <map>

namespace holdfast::guards::migrate {
namespace {

const Placeholders values = [](std::string_view name) -> std::optional<std::string> {
    const std::map<std::string, std::string, std::less<>> known{{"role", "app"}, {"a.b-c", "x"}, {"empty", ""}};
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
};

TEST(PlaceholdersTest, AreFilledIn) {
    EXPECT_EQ(fill_in("GRANT ALL TO ${role}; -- ${a.b-c}${empty}", values, "f").value(), "GRANT ALL TO app; -- x");
}

TEST(PlaceholdersTest, TwoDollarsStandForTheTextItself) {
    EXPECT_EQ(fill_in("SELECT '$${role}'", values, "f").value(), "SELECT '${role}'");
}

TEST(PlaceholdersTest, OtherDollarsStayAsTheyAre) {
    for (const char* text : {"$$ body $$", "$${\"json\": 1}$$", "${not closed", "$1 ${} ${a b}", "a$"})
        EXPECT_EQ(fill_in(text, values, "f").value(), text);
}

TEST(PlaceholdersTest, AllThatAreUnsetAreNamedWithTheirLines) {
    const auto filled = fill_in("${one}\n${role}\n${two}", values, "m/1_a.sql");
    ASSERT_FALSE(filled);
    EXPECT_EQ(filled.error().code, Errc::migration_failed);
    EXPECT_THAT(filled.error().message,
                testing::AllOf(testing::HasSubstr("m/1_a.sql:1: ${one}"), testing::HasSubstr("m/1_a.sql:3: ${two}")));
}

}  // namespace
}  // namespace holdfast::guards::migrate
