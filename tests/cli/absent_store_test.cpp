// A store that cannot be reached when a command begins to wait is a part of the wait.
#include "cli/sandbox.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;

class AbsentStore : public testing::Test {
protected:
    void SetUp() override {
        server_->kill();
        box.environment["HOLDFAST_STORE"] =
            fmt::format("redis://:{}@127.0.0.1:{}/0", tests::server_password, server_->port());
    }

    Running waiting(const Args& args) {
        Running command = box.start(args);
        EXPECT_TRUE(eventually([&] { return command.err().contains("waiting: Redis at"); })) << command.err();
        return command;
    }

    Sandbox box;
    std::unique_ptr<tests::Server> server_ = tests::start_redis_server();
};

TEST_F(AbsentStore, ThatComesBackIsUsed) {
    Running acquire = waiting({"acquire", "a", "--wait", "1m"});
    Running run = waiting({"run", "b", "--wait", "1m", "--", "true"});
    server_->start();
    EXPECT_EQ(acquire.wait().status, 0);
    EXPECT_EQ(run.wait().status, 0);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "held");
}

TEST_F(AbsentStore, ThatStaysAwayIsNoConflict) {
    for (const Args& command : std::vector<Args>{{"acquire", "a", "--wait", "300ms", "--json"},
                                                 {"hold", "a", "--for", "1m", "-m", "x", "--wait", "300ms", "--json"},
                                                 {"run", "a", "--wait", "300ms", "--json", "--", "true"}}) {
        const auto ended = box.run(command);
        EXPECT_EQ(ended.status, 69) << command.front() << ended.out;
        EXPECT_EQ(ended.code(), "E_STORE_UNAVAILABLE") << command.front();
    }
}

TEST_F(AbsentStore, IsWaitedForUntilASignal) {
    for (const Args& args :
         std::vector<Args>{{"acquire", "a", "--wait", "forever"}, {"run", "a", "--wait", "forever", "--", "true"}}) {
        Running command = waiting(args);
        command.signal(SIGTERM);
        EXPECT_EQ(command.wait().status, 128 + SIGTERM) << args.front();
    }
}

}  // namespace
}  // namespace holdfast::cli_test
