// Goal: a URL of a daemon says where it is and who asks, and nothing of the second is shown or sent where others could
// read it. Method: URLs that are good, misleading and wrong.
#include "stores/http/config.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"
#include "support/variable.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace holdfast::tests {
namespace {

using stores::http::Address;
using testing::HasSubstr;
using testing::Not;

Result<Address> address_of(std::string_view text) {
    auto url = base::Url::parse(text);
    if (!url) return std::unexpected(url.error());
    return Address::of(std::move(*url));
}

TEST(HttpConfig, TheUrlSaysWhereTheDaemonIs) {
    EXPECT_EQ(must(address_of("http://127.0.0.1")).base, "http://127.0.0.1:7420");
    EXPECT_EQ(must(address_of("http://localhost:80/")).base, "http://localhost:80");
    EXPECT_EQ(must(address_of("http://[::1]:81")).base, "http://[::1]:81");
    EXPECT_EQ(must(address_of("https://locks.example/holdfast/")).base, "https://locks.example:7420/holdfast");
    EXPECT_EQ(must(address_of("https://locks.example:443?ca=/etc/ca.pem")).ca_file, "/etc/ca.pem");
}

TEST(HttpConfig, WhatCannotBeADaemonIsRefused) {
    for (const char* url : {"http:127.0.0.1", "http:///x", "http://a,b", "http://127.0.0.1?sync=off",
                            "http://127.0.0.1?session=on", "http://127.0.0.1?ca=/x", "http://127.0.0.1/a%0d%0ab",
                            "https://a%20b", "https://a/b%3fc", "https://%0a", "https://a/%23"})
        EXPECT_THAT(address_of(url), RefusedWith(Errc::usage)) << url;
}

TEST(HttpConfig, NothingIsSentUnencryptedToAnotherHost) {
    for (const char* url : {"http://locks.example", "http://token@10.0.0.1:7420", "http://127.0.0.1.example"})
        EXPECT_THAT(address_of(url), RefusedWith(Errc::usage)) << url;
}

TEST(HttpConfig, TheTokenOfTheUrlIsNeverShown) {
    for (const char* url :
         {"https://canary@h", "https://who:canary@h", "https://:canary@h", "http://canary@127.0.0.1"}) {
        const Address address = must(address_of(url));
        EXPECT_EQ(address.token, "canary") << url;
        EXPECT_THAT(address.shown + address.base, Not(HasSubstr("canary"))) << url;
    }
    const auto refused = address_of("https://canary%0d%0aX-Admin@h");
    ASSERT_THAT(refused, RefusedWith(Errc::usage));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("canary")));
}

class HttpTokenFile : public testing::Test {
protected:
    std::string write(std::string_view text, mode_t mode = 0600) {
        const std::string path = (folder_.path() / "token").string();
        std::filesystem::remove(path);
        std::ofstream(path) << text;
        chmod(path.c_str(), mode);
        return "https://h?token_file=" + path;
    }

    TempFolder folder_;
};

TEST_F(HttpTokenFile, IsReadWithoutTheWhiteSpaceAroundTheToken) {
    EXPECT_EQ(must(address_of(write("canary\n"))).token, "canary");
    EXPECT_EQ(must(address_of(write("  canary \r\n", 0400))).token, "canary");
}

TEST_F(HttpTokenFile, ThatOthersCanReadIsRefused) {
    for (const mode_t mode : {0640U, 0604U, 0620U, 0666U})
        EXPECT_THAT(address_of(write("canary", mode)), RefusedWith(Errc::store_unsafe)) << std::oct << mode;
}

TEST_F(HttpTokenFile, WithoutATokenIsRefusedAndNotShown) {
    EXPECT_THAT(address_of(write("")), RefusedWith(Errc::usage));
    EXPECT_THAT(address_of(write(" \n")), RefusedWith(Errc::usage));
    EXPECT_THAT(address_of(write(std::string(5000, 'x'))), RefusedWith(Errc::usage));
    const auto two = address_of(write("canary one\ncanary two\n"));
    ASSERT_THAT(two, RefusedWith(Errc::usage));
    EXPECT_THAT(two.error().message, Not(HasSubstr("canary")));
    EXPECT_THAT(address_of("https://h?token_file=" + (folder_.path() / "none").string()),
                RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(address_of("https://h?token_file=" + folder_.path().string()), RefusedWith(Errc::store_unsafe));
}

TEST_F(HttpTokenFile, AndATokenInTheUrlContradictEachOther) {
    const std::string url = write("canary");
    EXPECT_THAT(address_of("https://other@" + url.substr(8)), RefusedWith(Errc::usage));
}

TEST_F(HttpTokenFile, CountsMoreThanTheEnvironment) {
    const Variable token("HOLDFAST_API_TOKEN", "environment");
    EXPECT_EQ(must(address_of("https://h")).token, "environment");
    EXPECT_EQ(must(address_of("https://url@h")).token, "url");
    EXPECT_EQ(must(address_of(write("file"))).token, "file");
}

TEST(HttpConfig, ATokenOfTheEnvironmentIsSentAsItIsOrNotAtAll) {
    const Variable token("HOLDFAST_API_TOKEN", "canary\r\nX-Admin: 1");
    const auto refused = address_of("https://h");
    ASSERT_THAT(refused, RefusedWith(Errc::usage));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace holdfast::tests
