// Goal: the password of a store's server reaches that server and nobody else, and a lease key only its own caller.
// Method: every command is run against real servers whose password is a word that nothing else contains, with URLs that
// work and URLs that fail in many ways; then outputs, files and the process list are searched for it.
#include "sandbox.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <ranges>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::ServerPlace;

/// The password without its first letter, which may be written `%63`.
const std::string canary = std::string(tests::server_password).substr(1);

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const auto at = text.find(what);
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

class Canary : public testing::TestWithParam<std::string> {
protected:
    Canary() {
        if (etcd_) tests::EtcdByHand(etcd_->port()).require_password("locks/");
        box_.environment["CANARY_RUN"] = box_.root.string();
    }

    [[nodiscard]] std::string good_url() const {
        if (!etcd_) return ServerPlace(GetParam(), tests::shared_server_port(GetParam()), place_).url();
        return "etcd://" + std::string(tests::server_user_name) + ":" + std::string(tests::server_password) +
               "@127.0.0.1:" + std::to_string(etcd_->port()) + "/locks";
    }
    /// The same with a mistake. Some fail before anything is sent, others at the server.
    [[nodiscard]] std::vector<std::string> bad_urls() const {
        const std::string good = good_url();
        const std::string password(tests::server_password);
        const std::string more = good.find('?') == std::string::npos ? "?" : "&";
        const std::string port =
            good.substr(good.rfind("1:") + 1, good.find('/', good.rfind("1:")) - good.rfind("1:") - 1);
        return {replaced(good, password, "not-" + password),
                replaced(good, password, password + "%zz"),
                replaced(good, password, password + "/" + password),
                replaced(good, password, password + "@" + password),
                replaced(good, password, password + "#" + password),
                replaced(good, password, password + "?" + password + "=" + password),
                replaced(good, port, ":1"),
                replaced(good, port, ":" + password),
                replaced(good, "127.0.0.1", "no-such-host.invalid"),
                good + more + "tls=maybe",
                good + more + "tls=verify&sslmode=verify-full",
                good + more + "no_such_parameter=" + password,
                good + more + "password=" + password + "&password=" + password};
    }

    void expect_silence(const Ended& ended, const Args& args, const std::string& secret = canary) {
        SCOPED_TRACE(testing::PrintToString(args));
        EXPECT_THAT(ended.out, Not(HasSubstr(secret)));
        EXPECT_THAT(ended.err, Not(HasSubstr(secret)));
    }
    Ended quiet_run(const Args& args, const Environment& more = {}) {
        Ended ended = box_.run(args, more);
        expect_silence(ended, args);
        return ended;
    }

    /// Every process of this test but itself, by its command line.
    [[nodiscard]] std::map<std::string, std::string> environments() const {
        std::map<std::string, std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            const std::string environment = content_of(entry.path() / "environ");
            if (environment.find("CANARY_RUN=" + box_.root.string()) == std::string::npos) continue;
            found.emplace(entry.path().filename().string() + " " + content_of(entry.path() / "cmdline"), environment);
        }
        return found;
    }

    Sandbox box_;
    const std::string place_ = "canary" + std::to_string(getpid());
    /// The etcd that the run shares asks nobody for a password.
    const std::unique_ptr<tests::Server> etcd_ = GetParam() == "etcd" ? tests::start_etcd_server() : nullptr;
};

TEST_P(Canary, NoCommandShowsAPasswordOrALeaseKey) {
    box_.environment["HOLDFAST_STORE"] = good_url();
    for (const Args& args : std::vector<Args>{{"init"}, {"init", "--print"}, {"doctor", "-v"}, {"doctor", "--json"}})
        EXPECT_EQ(quiet_run(args).status, 0) << args[0];
    const Ended grant = quiet_run({"acquire", "a", "--ttl", "1h", "--json", "-v"});
    ASSERT_EQ(grant.status, 0) << grant.err;
    const std::string lease = grant.json().text("/lease");
    const std::string key = lease.substr(lease.find('.') + 1);
    EXPECT_THAT(grant.err, Not(HasSubstr(key)));

    const std::vector<Args> commands{{"status"},
                                     {"status", "a"},
                                     {"acquire", "a"},
                                     {"hold", "a", "--for", "1m", "--reason", "upgrade"},
                                     {"renew", "a"},
                                     {"check", "a", "--token", "1"},
                                     {"history"},
                                     {"history", "--verify"},
                                     {"run", "a", "--", "/bin/true"},
                                     {"override", "request", "a"},
                                     {"override", "list"},
                                     {"override", "deny", "a"},
                                     {"unlock", "a"},
                                     {"bench", "--time", "50ms", "--clients", "2"},
                                     {"completion", "bash"},
                                     {"version"},
                                     {"release", "a"}};
    for (const Args& command : commands)
        for (const Args& flags : std::vector<Args>{{"-v"}, {"-v", "--json"}}) {
            Args args = command;
            args.insert(args.begin() + (args.front() == "override" ? 2 : 1), flags.begin(), flags.end());
            expect_silence(quiet_run(args, {{"HOLDFAST_LEASE", lease}}), args, key);
        }
    for (const auto& [path, content] : box_.files()) {
        EXPECT_THAT(content, Not(HasSubstr(canary))) << path;
        EXPECT_THAT(content, Not(HasSubstr(key))) << path;
    }
}

TEST_P(Canary, ANewLeaseIsShownToItsHolderOnly) {
    box_.environment["HOLDFAST_STORE"] = good_url();
    ASSERT_EQ(quiet_run({"init"}).status, 0);
    Running watch = box_.start({"watch", "-v"});
    Running watch_json = box_.start({"watch", "-v", "--json"});
    ASSERT_TRUE(eventually([&] {
        // Something to see, until both of them have seen it: only then they listen.
        quiet_run({"run", "sign", "--", "/bin/true"});
        return watch.out().find("sign") != std::string::npos && watch_json.out().find("sign") != std::string::npos;
    }));

    std::vector<std::string> keys;
    const auto lease_of = [&](const Args& args, const Environment& environment) {
        const Ended given = quiet_run(args, environment);
        EXPECT_EQ(given.status, 0) << given.err;
        const auto at = given.out.find("HOLDFAST_LEASE=");
        const std::string lease = at == std::string::npos ? "" : given.out.substr(at + 15, 36 + 1 + 32);
        EXPECT_EQ(lease.find('.'), 36U) << given.out;
        for (const std::string& known : keys) expect_silence(given, args, known);
        keys.push_back(lease.substr(lease.find('.') + 1));
        EXPECT_THAT(given.err, Not(HasSubstr(keys.back())));
        return lease;
    };
    const std::string first = lease_of({"acquire", "a", "--ttl", "1h", "--format", "sh", "-v"}, {});
    const std::string second =
        lease_of({"transfer", "a", "--to", "bob", "--format", "sh", "-v"}, {{"HOLDFAST_LEASE", first}});
    const std::string third = lease_of({"override", "request", "a", "--format", "sh", "-v"}, {});
    EXPECT_EQ(quiet_run({"override", "approve", "a", "-v"}, {{"HOLDFAST_LEASE", second}}).status, 0);
    EXPECT_EQ(quiet_run({"release", "a"}, {{"HOLDFAST_LEASE", third}}).status, 0);
    lease_of({"hold", "b", "--for", "1m", "--reason", "upgrade", "--format", "sh", "-v"}, {});

    ASSERT_TRUE(eventually([&] { return watch.out().find("override_approved") != std::string::npos; })) << watch.out();
    for (Running* one : {&watch, &watch_json}) {
        one->signal(SIGINT);
        const Ended ended = one->wait();
        expect_silence(ended, {"watch"});
        for (const std::string& key : keys) expect_silence(ended, {"watch"}, key);
    }
}

TEST_P(Canary, NoMistakeInAUrlShowsItsPassword) {
    for (const std::string& url : bad_urls()) {
        SCOPED_TRACE(url);
        EXPECT_NE(quiet_run({"acquire", "a", "-v"}, {{"HOLDFAST_STORE", url}}).status, 0);
        EXPECT_NE(quiet_run({"doctor", "--json", "-s", url}).status, 0);
        // In a configuration with a mistake of its own.
        box_.write(box_.work / "holdfast.toml", "store = \"" + url + "\nttl = 3");
        EXPECT_NE(quiet_run({"status", "-v"}).status, 0);
        std::filesystem::remove(box_.work / "holdfast.toml");
    }
    // Wherever it comes from.
    const std::string refused = bad_urls().front();
    box_.write(box_.root / "url", refused);
    EXPECT_NE(quiet_run({"status"}, {{"HOLDFAST_STORE_FILE", (box_.root / "url").string()}}).status, 0);
    EXPECT_NE(quiet_run({"run", "a", "-v", "-s", refused, "--", "/bin/true"}).status, 0);
    box_.write(box_.work / "holdfast.toml", "store = \"" + refused + "\"\nwait = \"soon\"\n");
    EXPECT_NE(quiet_run({"acquire", "a", "-v", "--json"}).status, 0);
}

TEST_P(Canary, TheProcessListShowsNeitherPasswordNorLeaseKey) {
    const std::string url = good_url();
    box_.write(box_.root / "url", replaced(url, "c" + canary, "%63" + canary));
    box_.write(box_.work / "child.sh", "echo \"$HOLDFAST_LEASE\" > lease.tmp\nmv lease.tmp lease\nexec sleep 60\n");
    const Args child{"--", "/bin/sh", "child.sh"};
    const std::vector<std::pair<Args, Environment>> ways{
        {{"run", "p", "--store", url}, {}},
        {{"run", "p", "--store=" + url}, {}},
        {{"run", "p"}, {{"HOLDFAST_STORE_FILE", (box_.root / "url").string()}}},
        {{"run", "p"}, {{"HOLDFAST_STORE", url}}}};
    for (const auto& [args, environment] : ways) {
        SCOPED_TRACE(testing::PrintToString(args));
        std::filesystem::remove(box_.work / "lease");
        Args command = args;
        command.insert(command.end(), child.begin(), child.end());
        Running running = box_.start(command, environment);
        ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box_.work / "lease"); })) << running.err();
        const std::string lease = content_of(box_.work / "lease");
        ASSERT_GT(lease.size(), 33U);
        const std::string key = lease.substr(lease.find('.') + 1, 32);

        // A process shows no environment while it executes another program: the child is whole when it sleeps.
        std::map<std::string, std::string> processes;
        EXPECT_TRUE(eventually([&] {
            processes = environments();
            const bool sleeps = std::ranges::any_of(std::views::keys(processes),
                                                    [](const auto& process) { return process.contains("sleep"); });
            return sleeps && processes.size() >= 3;
        })) << "the two processes of the command, and the child: "
            << testing::PrintToString(processes);
        for (auto [process, variables] : processes) {
            EXPECT_THAT(process, Not(HasSubstr(canary)));
            EXPECT_THAT(process, Not(HasSubstr(key)));
            // What the caller put there, and what the child is given, are where they belong.
            if (environment.contains("HOLDFAST_STORE")) variables = replaced(variables, "HOLDFAST_STORE=" + url, "");
            const std::string whole = lease.substr(0, lease.find('\n'));
            variables = replaced(replaced(variables, "HOLDFAST_LEASE=" + whole, ""), R"("lease":")" + whole, "");
            EXPECT_THAT(variables, testing::AllOf(Not(HasSubstr(canary)), Not(HasSubstr(key)))) << process;
        }
        running.signal(SIGTERM);
        expect_silence(running.wait(), args);
    }
}

INSTANTIATE_TEST_SUITE_P(Servers, Canary, testing::ValuesIn(tests::server_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::cli_test
