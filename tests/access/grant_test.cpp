// Which locks a grant covers, and above all which it does not.
#include "access/grant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::access {
namespace {

bool covers(const std::string& area, const std::string& name) {
    const auto lock = LockName::parse(name);
    EXPECT_TRUE(lock) << name;
    return Grant{Role::holder, area}.covers(*lock);
}

TEST(Grant, CoversALockAndWhatIsBelowItAndNoLockThatOnlyBeginsAlike) {
    EXPECT_TRUE(covers("a", "a"));
    EXPECT_TRUE(covers("a", "a/b"));
    EXPECT_TRUE(covers("a/b", "a/b/c"));
    for (const char* other : {"ab", "a-b", "a.b", "a b", "A", "b", "a\xcc\x81", "a%2Fb", "\xd0\xb0", "/a", "b/a"})
        EXPECT_FALSE(covers("a", other)) << other;
    EXPECT_FALSE(covers("a/b", "a")) << "a part of the area is not the area";
    EXPECT_FALSE(covers("a/b", "a/bc"));
}

TEST(Grant, WithASlashAtItsEndCoversOnlyWhatIsBelow) {
    EXPECT_TRUE(covers("a/", "a/b"));
    EXPECT_FALSE(covers("a/", "a"));
    EXPECT_FALSE(covers("a/", "a/"));
    EXPECT_TRUE(covers("a", "a/"));
}

TEST(Grant, WithoutAnAreaCoversEverything) {
    for (const char* name : {"a", "a/b", "\xc3\xbc", "%", "/"}) EXPECT_TRUE(covers("", name)) << name;
}

TEST(Grant, IsReadAsItIsWritten) {
    for (const char* text : {"viewer", "holder", "admin", "viewer:a", "holder:a/b/", "admin:a:b", "holder:*"}) {
        const auto grant = Grant::parse(text);
        ASSERT_TRUE(grant) << text;
        EXPECT_EQ(grant->text(), text);
    }
    EXPECT_EQ(*Grant::parse("holder:a:b"), (Grant{Role::holder, "a:b"}));
}

TEST(Grant, ThatIsNotMeantOrCanCoverNothingIsRefused) {
    for (const char* text : {"", ":", "holder:", "Holder", "root", "holder a", " viewer", "viewer ", "viewer:a/../b",
                             "viewer:..", "viewer:./a", "viewer:a\nb", "viewer:\xff"}) {
        const auto grant = Grant::parse(text);
        ASSERT_FALSE(grant) << text;
        EXPECT_EQ(grant.error().code, Errc::usage);
    }
}

}  // namespace
}  // namespace holdfast::access
