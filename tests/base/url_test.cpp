// A store's address: split exactly, and never repeated where it may hold a password.

#include "base/url.hpp"

#include "support/matchers.hpp"

#include <gtest/gtest.h>

namespace holdfast::base {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::Granted;
using tests::must;
using tests::RefusedWith;

TEST(UrlTest, SplitsSchemePlaceAndParameters) {
    const Url url = must(Url::parse("sqlite:///abs/file.db?sync=off&x=1"));
    EXPECT_EQ(url.scheme, "sqlite");
    EXPECT_EQ(url.place, "/abs/file.db");
    EXPECT_EQ(url.parameters, (std::map<std::string, std::string>{{"sync", "off"}, {"x", "1"}}));
}

TEST(UrlTest, FindsThePlaceWithAndWithoutSlashes) {
    const std::vector<std::pair<std::string_view, std::string_view>> places{{"sqlite:file.db", "file.db"},
                                                                            {"sqlite:./file.db", "./file.db"},
                                                                            {"file:/var/lib/locks", "/var/lib/locks"},
                                                                            {"file:///var/lib", "/var/lib"},
                                                                            {"memory:", ""},
                                                                            {"file:a%20b", "a b"},
                                                                            {"file:C:/x", "C:/x"},
                                                                            {"file:?sync=off", ""},
                                                                            {"file:%3f", "?"}};
    for (const auto& [text, place] : places) EXPECT_EQ(must(Url::parse(text)).place, place) << text;
}

TEST(UrlTest, DecodesTheValuesOfParameters) {
    EXPECT_EQ(must(Url::parse("file:x?a=%26b%3dc")).parameters.at("a"), "&b=c");
    EXPECT_EQ(must(Url::parse("file:x?a=b=c")).parameters.at("a"), "b=c");
    EXPECT_EQ(must(Url::parse("file:x?a=")).parameters.at("a"), "");
}

TEST(UrlTest, RefusesWhatIsNoUrl) {
    for (const std::string_view text :
         {"", "x", "/var/lib/locks", ":x", "1file:x", "FILE:x", "fi le:x", "fi-le:x", "file:%", "file:%2", "file:%zz",
          "file:%00", "file:x?sync", "file:x?=on", "file:x?a=1&a=2", "file:x?a=%g0", "file:x?&a=1"})
        EXPECT_THAT(Url::parse(text), RefusedWith(Errc::usage)) << text;
    EXPECT_THAT(Url::parse(std::string_view("file:\0", 6)), RefusedWith(Errc::usage));
}

TEST(UrlTest, ARefusalNeverRepeatsThePassword) {
    for (const std::string_view text :
         {"postgres//u:hunter2@h/db", "postgres://u:hunter2@h/%zz", "postgres://u:hunter2@h/db?x",
          "postgres://u:%00hunter2@h/db", "postgres://u@h/db?password=hunter2&password=hunter2"}) {
        const auto url = Url::parse(text);
        ASSERT_FALSE(url) << text;
        EXPECT_THAT(url.error().message, Not(HasSubstr("hunter2")));
    }
}

TEST(UrlTest, ShowsPeopleNoPassword) {
    for (const std::string_view text :
         {"postgres://u:hunter2@h:5432/db", "redis://:hunter2@h:6379/0", "mysql://u:hunter2%40x@h/db",
          "postgres://h/db?password=hunter2", "postgres://u:a/hunter2@h/db"}) {
        const std::string shown = must(Url::parse(text)).redacted();
        EXPECT_THAT(shown, Not(HasSubstr("hunter2"))) << text;
        EXPECT_THAT(shown, HasSubstr("h")) << text;
    }
    EXPECT_EQ(must(Url::parse("sqlite:///var/lib/locks.db?sync=off")).redacted(), "sqlite:/var/lib/locks.db");
    EXPECT_EQ(must(Url::parse("file:/srv/a@b/locks")).redacted(), "file:/srv/a@b/locks") << "no password is there";
}

TEST(UrlTest, ReadsAServersPlace) {
    const Server one = must(must(Url::parse("mysql://ann:p%40ss%3Aw@db.example:3306/locks%2Fx")).server());
    EXPECT_EQ(one.user, "ann");
    EXPECT_EQ(one.password, "p@ss:w");
    EXPECT_EQ(one.endpoints, (std::vector<Server::Endpoint>{{"db.example", 3306}}));
    EXPECT_EQ(one.path, "locks/x");

    const Server several = must(must(Url::parse("etcd://h1:2379,[::1]:2380,h3/prefix")).server());
    EXPECT_FALSE(several.user);
    EXPECT_FALSE(several.password);
    EXPECT_EQ(several.endpoints, (std::vector<Server::Endpoint>{{"h1", 2379}, {"::1", 2380}, {"h3", std::nullopt}}));
    EXPECT_EQ(several.path, "prefix");

    const Server secret = must(must(Url::parse("redis://:pw@h")).server());
    EXPECT_FALSE(secret.user);
    EXPECT_EQ(secret.password, "pw");
    EXPECT_EQ(secret.path, "");
}

TEST(UrlTest, RefusesAServerThatIsNone) {
    for (const std::string_view text :
         {"redis://", "redis://:pw@", "redis:///0", "redis://h:", "redis://h:0", "redis://h:x", "redis://h:65536",
          "redis://h:1x", "redis://[::1", "redis://h,,i", "redis://[::1]1"})
        EXPECT_THAT(must(Url::parse(text)).server(), RefusedWith(Errc::usage)) << text;
}

TEST(UrlTest, ASwitchIsOnOrOffAndTakenOnce) {
    Url url = must(Url::parse("file:x?sync=off&fast=on&loud=yes"));
    EXPECT_EQ(must(url.take_switch("sync", true)), false);
    EXPECT_EQ(must(url.take_switch("sync", true)), true) << "taken already, so the fallback counts";
    EXPECT_EQ(must(url.take_switch("fast", false)), true);
    EXPECT_THAT(url.take_switch("loud", true), RefusedWith(Errc::usage));
    EXPECT_THAT(url.expect_no_parameters(), Granted());
}

TEST(UrlTest, AParameterThatNobodyTookIsRefused) {
    EXPECT_THAT(must(Url::parse("file:x")).expect_no_parameters(), Granted());
    EXPECT_THAT(must(Url::parse("file:x?snyc=off")).expect_no_parameters(), RefusedWith(Errc::usage));
}

TEST(UrlTest, ASecretIsHiddenWhereverAMessageRepeatsIt) {
    EXPECT_EQ(without_secret("user bob, password s3cret; s3cret refused", "s3cret"),
              "user bob, password ***; *** refused");
    EXPECT_EQ(without_secret("nothing to hide", ""), "nothing to hide");
    EXPECT_EQ(without_secret("a*b", "*"), "a***b") << "also one that is in what stands instead of it";
}

}  // namespace
}  // namespace holdfast::base
