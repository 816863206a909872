// Goal: a test run without one of its servers fails when it begins, and says which one is missing; tests that find none
// would only fail later, or look at a stranger's. Method: the keeper itself, with a server that cannot start.
#include "support/process.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;

/// What the keeper's start ends with, and what it says.
std::pair<Exit, std::string> started(const fs::path& folder, const std::string& setting) {
    Process keeper = Process::run(
        {"/bin/sh", "-c", R"(env "$1" "$2" start "$3" redis etcd 2>&1)", "sh", setting, KEEPER, folder.string()});
    std::string said = keeper.read_all();
    return {keeper.wait(), std::move(said)};
}

TEST(Keeper, FailsWhenAServerCannotStartAndSaysWhich) {
    const TempFolder folder;
    // Every etcd reads its environment, and this one does not understand it.
    const auto [exit, said] = started(folder.path() / "servers", "ETCD_MAX_TXN_OPS=many");
    EXPECT_EQ(exit, (Exit{.status = 1}));
    EXPECT_THAT(said, testing::HasSubstr("etcd"));
    EXPECT_FALSE(fs::exists(folder.path() / "servers" / "etcd")) << "where tests look for its port";
}

TEST(Keeper, KeepsServersThatAreUp) {
    const TempFolder folder;
    const fs::path servers = folder.path() / "servers";
    // The keeper lives as long as the process that started it.
    Process run = Process::run({"/bin/sh", "-c",
                                R"("$1" start "$2" redis && test -s "$2/redis" && "$1" stop "$2" && ! test -e "$2")",
                                "sh", KEEPER, servers.string()});
    const std::string said = run.read_all();
    EXPECT_EQ(run.wait(), (Exit{.status = 0})) << said;
}

TEST(Server, IsUpOnlyIfItListensItself) {
    const auto redis = start_redis_server();
    EXPECT_TRUE(redis->listens());
    // A server that failed, on a port where a stranger answers.
    const Proxy stranger(redis->port());
    const Server failed({.name = "sleep", .command = {"/bin/sleep", "100"}, .is_ready = [] { return true; }},
                        std::make_shared<ServerFolder>(), stranger.port());
    EXPECT_FALSE(failed.listens());
    redis->kill();
    EXPECT_FALSE(redis->listens());
}

}  // namespace
}  // namespace holdfast::tests
