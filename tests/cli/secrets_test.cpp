// A lease key reaches only the caller that acquired the lease; a password reaches nobody.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Secrets, ALeaseKeyIsPrintedOnlyForItsHolder) {
    for (const std::string& store : stores()) {
        Sandbox box;
        box.environment["HOLDFAST_STORE"] = store;
        const auto grant = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
        const std::string lease = grant.text("/lease");
        const std::string key = lease.substr(lease.find('.') + 1);
        ASSERT_EQ(key.size(), 32U);
        const Environment holder{{"HOLDFAST_LEASE", lease}};
        const std::vector<Args> commands{{"status"},
                                         {"status", "a"},
                                         {"acquire", "a"},
                                         {"renew", "a"},
                                         {"history"},
                                         {"history", "--verify"},
                                         {"doctor"},
                                         {"override", "list"},
                                         {"check", "a", "--token", "1"},
                                         {"unlock", "a"},
                                         {"release", "other"},
                                         {"renew", "other"},
                                         {"renew", "a", "--lease", lease, "--ttl", "nonsense"},
                                         {"status", lease},
                                         {"release", "a", "--lease", lease + "0"},
                                         {"renew", "a", "--verbose"},
                                         {"release", "a"}};
        for (const Args& command : commands) {
            for (const bool json : {false, true}) {
                Args args = command;
                if (json) args.emplace_back("--json");
                const auto ended = box.run(args, holder);
                // A lock that is called like the lease is shown by its name; that is not a leak.
                if (command.size() == 2 && command[1] == lease) continue;
                EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(key)))
                    << command[0] << (command.size() > 1 ? command[1] : "");
            }
        }
        for (const auto& [path, content] : box.files()) EXPECT_THAT(content, Not(HasSubstr(key))) << path;
    }
}

TEST(Secrets, APasswordInAStoresAddressIsNeverShown) {
    Sandbox box;
    const std::string password = "hunter2canary";
    for (const std::string& url :
         {"redis://:" + password + "@127.0.0.1:1/0", "sqlite://user:" + password + "@x/y?z", password + ":x",
          "nonsense://user:" + password + "@h/%zz", "file://u:" + password + "@h/dir?bad=1"}) {
        for (const Args& args : std::vector<Args>{{"acquire", "a", "-v"},
                                                  {"doctor"},
                                                  {"status", "--json"},
                                                  {"init", "--print"},
                                                  {"acquire", "a", "--json"}}) {
            const auto by_environment = box.run(args, {{"HOLDFAST_STORE", url}});
            EXPECT_THAT(by_environment.out + by_environment.err, Not(HasSubstr(password))) << args[0] << " " << url;
            Args by_flag = args;
            by_flag.insert(by_flag.end(), {"--store", url});
            const auto ended = box.run(by_flag);
            EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(password))) << args[0] << " " << url;
        }
        box.write(box.work / "holdfast.toml", "store = \"" + url + "\"\n");
        const auto by_file = box.run({"status", "-v"});
        EXPECT_THAT(by_file.out + by_file.err, Not(HasSubstr(password))) << url;
        std::filesystem::remove(box.work / "holdfast.toml");
    }
}

// A user that can see a lock cannot act as its holder.
TEST(Secrets, StatusGivesNobodyTheLease) {
    Sandbox box;
    const auto grant = box.run({"acquire", "a", "--json"}).json();
    const std::string guess = box.run({"status", "a", "--json"}).json().text("/lock_id") + "." + std::string(32, '0');
    EXPECT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", guess}}).status, 79);
    EXPECT_EQ(box.run({"renew", "a"}, {{"HOLDFAST_LEASE", guess}}).status, 79);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), grant.text("/lock_id"));
}

// A lease that could not be printed would keep the lock until it runs out, and nobody could give it back.
TEST(Secrets, ALeaseThatNobodyCanReadIsGivenBack) {
    Sandbox box;
    const std::string program = HOLDFAST_PROGRAM;
    const auto full = box.run_program({"/bin/sh", "-c", "'" + program + "' acquire a --ttl 1h > /dev/full"});
    EXPECT_EQ(full.status, 125);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free");
    const auto closed = box.run_program({"/bin/sh", "-c", "'" + program + "' acquire a --ttl 1h >&-"});
    EXPECT_EQ(closed.status, 125);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free");
}

TEST(Secrets, TextFromOthersCannotDriveATerminal) {
    Sandbox box;
    ASSERT_EQ(box.run({"acquire", "a", "-m", "line\n\x1b[2Jwiped"}).status, 0);
    for (const Args& args :
         std::vector<Args>{{"status"}, {"status", "a"}, {"history"}, {"acquire", "a"}, {"unlock", "a"}}) {
        const auto ended = box.run(args);
        EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("\x1b"))) << args[0];
    }
}

// U+202E turns the rest of a line around, and U+200B shows nothing: two different names would look alike.
TEST(Secrets, TextFromOthersLooksLikeWhatItIs) {
    Sandbox box;
    const std::string odd = "a\xe2\x80\xae\xe2\x80\x8b";
    const auto grant = box.run({"acquire", odd, "-m", odd, "--operation", odd, "--holder", odd, "--user", odd});
    ASSERT_EQ(grant.status, 0) << grant.err;
    EXPECT_THAT(grant.out, Not(HasSubstr("\xe2\x80")));
    ASSERT_EQ(box.run({"override", "request", odd, "-m", odd, "--holder", odd, "-q"}).status, 0);
    for (const Args& args : std::vector<Args>{{"status"},
                                              {"status", odd},
                                              {"history"},
                                              {"acquire", odd},
                                              {"override", "list"},
                                              {"run", odd, "--", "true"},
                                              {"run", "b", "--unless-held", odd, "--", "true"},
                                              {"check", odd, "--token", "1"},
                                              {"release", odd, "--lease", odd},
                                              {"acquire", "b", "--ttl", odd},
                                              {"acquire", "b", "--config", odd},
                                              {"acquire", "b", "--store", "sqlite:/dev/null/" + odd},
                                              {"acquire", "b", "--" + odd},
                                              {odd},
                                              {"help", odd},
                                              {"init", "--store", "file:" + odd},
                                              {"doctor", "--store", "file:" + odd},
                                              {"status", "-v", "--store", "file:" + odd},
                                              {"unlock", odd, "--yes", "--holder", odd, "-m", odd},
                                              {"status", odd}})
        for (const bool json : {false, true}) {
            Args all = args;
            if (json) all.insert(all.begin(), "--json");
            const auto ended = box.run(all);
            EXPECT_THAT(ended.out + ended.err, Not(HasSubstr("\xe2\x80"))) << args[0] << json;
        }
    EXPECT_EQ(box.run({"status", odd, "--json"}).json().text("/name"), odd) << "for programs it is the same text";
}

}  // namespace
}  // namespace holdfast::cli_test
