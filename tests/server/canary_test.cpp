// Goal: the token of an http store reaches its daemon and nobody else.
// Method: `run` on a daemon that asks for a token, given to it in every way; then outputs, log and the process list are
// searched for it.
#include "server/guarded.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace holdfast::server_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The environment of each process that was started in `box`, by its command line.
std::map<std::string, std::string> processes_of(const cli_test::Sandbox& box) {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string environment = content_of(entry.path() / "environ");
        if (environment.find("CANARY_RUN=" + box.root.string()) == std::string::npos) continue;
        found.emplace(entry.path().filename().string() + " " + content_of(entry.path() / "cmdline"), environment);
    }
    return found;
}

struct Way {
    cli_test::Args flags{};
    cli_test::Environment environment{};
};

TEST(HttpCanary, TheTokenIsNeitherInTheProcessListNorInAnyOutput) {
    Guarded guarded({"--log-requests"});
    const std::string token = guarded.token("canary", {"holder"});
    // Without its public id.
    const std::string secret = token.substr(token.size() - 20);
    const std::string place = "127.0.0.1:" + std::to_string(guarded.daemon.port());
    cli_test::Sandbox box;
    box.environment["CANARY_RUN"] = box.root.string();
    const std::string token_file = (box.root / "token").string();
    const std::string url_file = (box.root / "url").string();
    box.write(token_file, token + "\n");
    box.write(url_file, "http://" + token + "@" + place);
    for (const std::string& path : {token_file, url_file})
        std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const std::string with_secret = "http://" + token + "@" + place;
    const std::vector<Way> ways{{{"--store", with_secret}, {}},
                                {{"--store", "http://" + place + "?token_file=" + token_file}, {}},
                                {{}, {{"HOLDFAST_STORE_FILE", url_file}}},
                                {{}, {{"HOLDFAST_STORE", with_secret}}},
                                {{"--store", "http://" + place}, {{"HOLDFAST_API_TOKEN", token}}}};
    for (const Way& way : ways) {
        SCOPED_TRACE(testing::PrintToString(way.flags) + testing::PrintToString(way.environment));
        cli_test::Args args{"run", "a", "-v", "--ttl", "1h"};
        args.insert(args.end(), way.flags.begin(), way.flags.end());
        args.insert(args.end(), {"--", "/bin/sleep", "600"});
        cli_test::Running running = box.start(args, way.environment);
        std::map<std::string, std::string> processes;
        // A process shows no environment while it executes another program.
        EXPECT_TRUE(cli_test::eventually([&] {
            processes = processes_of(box);
            return processes.size() >= 3 &&
                   std::ranges::any_of(processes, [](const auto& each) { return each.first.contains("/bin/sleep"); });
        })) << "the two processes of the command, and the child: "
            << testing::PrintToString(processes) << running.err();
        for (auto [process, variables] : processes) {
            EXPECT_THAT(process, Not(HasSubstr(secret)));
            // What the caller put there.
            for (const auto& [name, value] : way.environment)
                if (const auto at = variables.find(name + "=" + value); at != std::string::npos)
                    variables.erase(at, name.size() + 1 + value.size());
            EXPECT_THAT(variables, Not(HasSubstr(secret))) << process;
        }
        running.signal(SIGTERM);
        const cli_test::Ended ended = running.wait();
        EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(secret)));
    }
    EXPECT_THAT(guarded.daemon.log(), testing::AllOf(HasSubstr("/v1/batch"), Not(HasSubstr(secret))));
}

}  // namespace
}  // namespace holdfast::server_test
