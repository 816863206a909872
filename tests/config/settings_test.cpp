// Settings without a command line: what a daemon has. Method: a purpose of its own, with its own keys.
#include "config/settings.hpp"

#include "support/temp_folder.hpp"
#include "support/variable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace holdfast::config {
namespace {

constexpr Setting listen{"listen", Takes::one, "127.0.0.1:7420"};

std::vector<std::string> daemon_keys() { return {"store", "listen", "ttl"}; }

class DaemonSettings : public testing::Test {
protected:
    Purpose purpose() const {
        Purpose purpose{.name = "serve"};
        purpose.settings = {&listen, &setting::store, &setting::config, &setting::ttl};
        purpose.known_keys = daemon_keys;
        return purpose;
    }
    Result<Settings> settle(const std::string& file, Given given = {}) const {
        const auto path = folder.path() / "holdfast.toml";
        std::ofstream(path) << file;
        given.emplace("config", std::vector{path.string()});
        return Settings::settle(purpose(), given);
    }

    tests::TempFolder folder;
};

TEST_F(DaemonSettings, HaveTheKeysThatTheirPurposeNames) {
    EXPECT_EQ(settle("")->text(listen), "127.0.0.1:7420");
    EXPECT_EQ(settle("listen = \"[::1]:1\"\n")->text(listen), "[::1]:1");
    EXPECT_EQ(settle("listen = \"[::1]:1\"\n", {{"listen", {"[::1]:2"}}})->text(listen), "[::1]:2");
    const auto unknown = settle("lisen = \"x\"\n");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Errc::config);
    EXPECT_THAT(unknown.error().message, testing::HasSubstr("did you mean listen?"));
}

TEST_F(DaemonSettings, HaveThePoliciesOfTheFile) {
    const auto settings = settle("[[policy]]\nmatch = \"a/*\"\nttl = \"7s\"\n");
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->terms_for(*LockName::parse("a/b"), {})->ttl.time(), std::chrono::seconds{7});
    EXPECT_EQ(settings->terms_for(*LockName::parse("b"), {})->ttl.time(), client::default_ttl);
}

TEST_F(DaemonSettings, RefuseMemoryUnlessThePurposeAllowsIt) {
    const Given memory{{"store", {"memory:"}}};
    EXPECT_EQ(settle("", memory)->store_urls().error().code, Errc::config);
    Purpose bench = purpose();
    bench.may_use_memory = true;
    bench.known_keys = nullptr;
    EXPECT_EQ(Settings::settle(bench, memory)->store_urls().value(), std::vector<std::string>{"memory:"});
}

TEST_F(DaemonSettings, WithoutKeysNoFileIsRead) {
    Purpose version = purpose();
    version.known_keys = nullptr;
    const auto path = folder.path() / "holdfast.toml";
    std::ofstream(path) << "not TOML";
    EXPECT_TRUE(Settings::settle(version, {{"config", {path.string()}}}));
}

}  // namespace
}  // namespace holdfast::config
