// Goal: a module of another build is refused before anything of it is called. Method: real modules, one of them built
// with the debug mode of the standard library, and tags that differ in one thing each.
#include "base/module.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace holdfast::base {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

class Modules : public testing::Test {
protected:
    Modules() { setenv("HOLDFAST_MODULES", HOLDFAST_TEST_MODULES, 1); }
    ~Modules() override { unsetenv("HOLDFAST_MODULES"); }
};

TEST_F(Modules, OfThisBuildAreLoaded) {
    const auto module = load_module("test", "plain");
    ASSERT_TRUE(module) << module.error().message;
    EXPECT_NE(*module, nullptr);
}

TEST_F(Modules, WithOtherContainersAreRefused) {
    const auto module = load_module("test", "debug");
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code, Errc::store_unavailable);
    EXPECT_THAT(module.error().message, AllOf(HasSubstr("holdfast-test-debug.so"), HasSubstr("_GLIBCXX_DEBUG")));
}

TEST_F(Modules, WithoutTheEntryOfThisVersionAreRefused) {
    const auto module = load_module("test", "entryless");
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code, Errc::store_unavailable);
    EXPECT_THAT(module.error().message, HasSubstr("another version"));
}

TEST_F(Modules, ThatAreNotThereAreNotInstalled) {
    const auto module = load_module("test", "absent");
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().code, Errc::usage);
    EXPECT_THAT(module.error().message, HasSubstr("holdfast-test-absent.so is not installed"));
}

constexpr AbiTag ours = make_abi_tag("1.2.3", "0123456789abcdef");

TEST(AbiTags, OfOneBuildDoNotDiffer) {
    EXPECT_EQ(difference(ours, make_abi_tag("1.2.3", "0123456789abcdef")), std::nullopt);
}

TEST(AbiTags, NameBothSidesOfADifference) {
    EXPECT_THAT(difference(ours, make_abi_tag("1.2.4", "0123456789abcdef")),
                Optional(AllOf(HasSubstr("1.2.3"), HasSubstr("1.2.4"))));
    EXPECT_THAT(difference(ours, make_abi_tag("1.2.3", "fedcba9876543210")),
                Optional(AllOf(HasSubstr("0123456789ab"), HasSubstr("fedcba987654"))));
    AbiTag other = ours;
    other.has_new_strings ^= 1U;
    EXPECT_THAT(difference(ours, other), Optional(HasSubstr("_GLIBCXX_USE_CXX11_ABI")));
    for (std::uint32_t& size : other.sizes) {
        other = ours;
        ++size;
        EXPECT_THAT(difference(ours, other), Optional(HasSubstr("layout")));
    }
}

TEST(AbiTags, WithoutAnEndAreReadToTheirEnd) {
    AbiTag endless = ours;
    endless.version.fill('7');
    EXPECT_THAT(difference(ours, endless), Optional(HasSubstr(std::string(endless.version.size(), '7'))));
}

}  // namespace
}  // namespace holdfast::base
