// Goal: no process of a command lives under the next lease, whatever happens to the two processes of `run` and however
// the command behaves. Method: many rounds with a seed; in each a process of `run` is killed or stopped at a random
// moment while another `run` waits for the lock. Every process of the first command inherits a shared lock on a file;
// the second command, which begins under the next lease, must find that nobody has one. A process that sudo started
// takes the lock itself, because sudo closes what it inherits, and tells if it came too late. `make chain-campaign` is
// the same with more rounds.

#include "cli/sandbox.hpp"
#include "support/matchers.hpp"
#include "support/run_settings.hpp"
#include "support/store_harness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using cli_test::eventually;
using cli_test::Running;

struct Harm {
    int signal;
    bool inner;
    const char* name;
};
constexpr std::array harms{
    Harm{SIGKILL, false, "kill the outer process"}, Harm{SIGKILL, true, "kill the inner process"},
    Harm{SIGSTOP, false, "stop the outer process"}, Harm{SIGSTOP, true, "stop the inner process"}};

/// What a command does with its work, which is to live.
const std::vector<std::string> without_sudo{"work",
                                            "trap '' TERM; work",
                                            "work & trap '' TERM; work",
                                            "setsid sh -c \"$work\" & work",
                                            "(trap '' TERM; setsid env -i PATH=/usr/bin:/bin sh -c \"$work\" &) ; work",
                                            "trap '' TERM; setsid env -i PATH=/usr/bin:/bin sh -c \"$work\" & exit 0"};
const std::vector<std::string> with_sudo{"sudo -n sh -c \"$sign; $work\"",
                                         "sudo -n setsid env -i PATH=/usr/bin:/bin sh -c \"$sign; $work\" & work"};

/// Only root can end what sudo has started.
std::vector<std::string> behaviours() {
    auto all = without_sudo;
    if (geteuid() == 0 && std::filesystem::exists("/usr/bin/sudo"))
        all.insert(all.end(), with_sudo.begin(), with_sudo.end());
    return all;
}

pid_t first_child_of(pid_t parent) {
    pid_t child = 0;
    std::ifstream("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children") >> child;
    return child;
}

bool has_ended(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

class Campaign {
public:
    Campaign(const std::string& url, std::uint64_t seed) : random_(seed) {
        box_.environment["HOLDFAST_STORE"] = url;
        box_.write(box_.work / "alive", "");
        box_.write(box_.work / "command.sh",
                   "work='i=0; while [ $i -lt 1500 ]; do sleep .02; i=$((i+1)); done'\nwork() { eval \"$work\"; }\n"
                   "sign='exec 9<alive; flock -n -s 9 || : >intruder'\n"
                   "exec 9<alive\nflock -s 9\n: >\"began.$1\"\neval \"$2\"\n");
    }

    void round(int number) {
        const Harm& harm = harms[below(harms.size())];
        const std::string behaviour = behaviours_[below(behaviours_.size())];
        ++times_[harm.name];
        SCOPED_TRACE(std::to_string(number) + ": " + harm.name + ", " + behaviour);
        Running first = box_.start({"run", "x", "--ttl", "1s", "--grace", "300ms", "--wait", "30s", "--", "/bin/sh",
                                    "command.sh", std::to_string(number), behaviour});
        const auto began = box_.work / ("began." + std::to_string(number));
        // Some are harmed while they wait or begin, most while the command works.
        if (below(4) != 0) {
            // On a busy machine the lease may be over before the command can be started.
            ASSERT_TRUE(eventually([&] { return std::filesystem::exists(began) || has_ended(first.pid()); }))
                << first.err();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{below(below(2) == 0 ? 30 : 900)});
        Running second = box_.start(
            {"run", "x", "--ttl", "5s", "--wait", "30s", "--", "/bin/sh", "-c", "exec flock -n -x alive sleep .1"});
        const pid_t victim = harm.inner ? first_child_of(first.pid()) : first.pid();
        if (victim > 0) kill(victim, harm.signal);
        if (harm.signal == SIGSTOP && !harm.inner) {
            std::this_thread::sleep_for(std::chrono::milliseconds{below(1500)});
            kill(first.pid(), SIGKILL);
        }
        // Harmed before it held anything, or not at all: it would go on.
        if (victim == 0) kill(first.pid(), SIGKILL);
        const auto next = second.wait();
        EXPECT_NE(next.status, 1) << "a process of the first command lives under the next lease";
        EXPECT_FALSE(std::filesystem::exists(box_.work / "intruder")) << "a process began under the next lease";
        // 69: stopped in the middle of a transaction, the inner process keeps everybody from using SQLite.
        EXPECT_THAT(next.status, testing::AnyOf(0, 69)) << next.err;
        // Stopped before it held anything: nobody had a reason to end it.
        if (victim > 0 && first_child_of(first.pid()) == victim) kill(victim, SIGKILL);
        static_cast<void>(first.wait());
        ASSERT_TRUE(eventually([&] {
            return box_.run_program({"/usr/bin/flock", "-n", "-x", "alive", "true"}).status == 0;
        })) << "somebody lives on without a lease";
    }

    void print() const {
        for (const auto& [harm, times] : times_) std::printf("  %d times: %s\n", times, harm.c_str());
    }

private:
    std::uint32_t below(std::size_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

    std::mt19937_64 random_;
    const std::vector<std::string> behaviours_ = behaviours();
    std::map<std::string, int> times_{};
    cli_test::Sandbox box_;
};

struct StoreCase {
    const char* name;
    Result<std::unique_ptr<StoreHarness>> (*start)();
};

void PrintTo(const StoreCase& store, std::ostream* out) { *out << store.name; }

class ChainCampaign : public testing::TestWithParam<StoreCase> {};

TEST_P(ChainCampaign, NobodyLivesUnderTheNextLease) {
    const auto harness = must(GetParam().start());
    const int rounds = scaled(8);
    Campaign campaign(harness->url(), seed_of("ChainCampaign"));
    int number = 0;
    while (number < rounds && !HasFailure()) campaign.round(++number);
    std::printf("%d rounds on %s\n", number, GetParam().name);
    campaign.print();
}

INSTANTIATE_TEST_SUITE_P(Store, ChainCampaign,
                         testing::Values(StoreCase{"sqlite", start_sqlite}, StoreCase{"postgres", start_postgres}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace holdfast::tests
