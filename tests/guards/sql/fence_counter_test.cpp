// Goal: what holders wrote one after the other is all there, whatever pauses and steals happen in between; and without
// the fence it is not. Method: processes read, stop themselves for longer than their lease, and write; the test wakes
// them as soon as others have gone on. Prints the seed and both sums.
#include "guards/sql/fence.hpp"
#include "guards/sql/protected_place.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

constexpr int processes = 8;
/// A process stays stopped until somebody else has added to the counter; or for this long, when nobody can.
constexpr auto longest_pause = 1s;

struct Sums {
    long acknowledged = 0;
    long unknown = 0;
    long counted = 0;
};

struct Stopped {
    pid_t pid;
    std::string counter;  ///< When it was seen.
    Deadline until;
};

/// Wakes processes that stopped themselves.
void wake(const std::vector<pid_t>& pids, const std::function<std::string()>& counter, const std::stop_token& over) {
    std::vector<Stopped> all;
    while (!over.stop_requested()) {
        const std::string now = counter();
        for (const pid_t pid : pids) {
            siginfo_t stopped{};
            const int found = waitid(P_PID, static_cast<id_t>(pid), &stopped, WSTOPPED | WNOHANG);
            if (found == 0 && stopped.si_pid != 0) all.push_back({pid, now, Deadline::in(host_clock(), longest_pause)});
        }
        std::erase_if(all, [&](const Stopped& one) {
            if (one.counter == now && !one.until.passed(host_clock())) return false;
            kill(one.pid, SIGCONT);
            return true;
        });
        std::this_thread::sleep_for(20ms);
    }
}

class FenceCounter : public testing::TestWithParam<SqlDialect> {
protected:
    FenceCounter() : place_(GetParam()) {
        place_("CREATE TABLE counter (v BIGINT)");
        place_("INSERT INTO counter VALUES (0)");
        const auto fence = must(guards::fence::Fence::of(*shell_, host_clock(), Deadline::never()));
        must(fence->create(Deadline::never()));
        must(fence->install_assert(Deadline::never()));
    }

    [[nodiscard]] Sums run(const std::string& mode, int rounds) {
        const auto seed = seed_of(mode + " counter on " + name_of(GetParam()));
        const std::string store = "sqlite:" + (folder_.path() / "locks.db").string() + "?sync=off";
        std::vector<Process> all;
        std::vector<pid_t> pids;
        for (int i = 0; i < processes; ++i) {
            all.push_back(Process::run({FENCE_SUBJECT, mode, store, place_.url(), std::to_string(rounds),
                                        std::to_string(seed + static_cast<std::uint64_t>(i))}));
            pids.push_back(all.back().pid());
        }
        std::jthread waking([&](const std::stop_token& over) { wake(pids, [&] { return look(); }, over); });
        Sums sums;
        for (Process& process : all) {
            const std::string said = process.read_all();
            sums.acknowledged += std::ranges::count(said, 'd');
            sums.unknown += std::ranges::count(said, 'm');
            EXPECT_EQ(process.wait().status, 0);
        }
        sums.counted = std::stol(place_("SELECT v FROM counter"));
        std::printf("%s on %s: %ld acknowledged, %ld unknown, %ld counted\n", mode.c_str(), name_of(GetParam()).c_str(),
                    sums.acknowledged, sums.unknown, sums.counted);
        return sums;
    }

private:
    /// On a connection of its own, and without failing while somebody has the file.
    [[nodiscard]] std::string look() const {
        const auto seen = shell_->run({.text = "SELECT v FROM counter", .values = {}}, Deadline::never());
        return seen ? seen->rows.at(0).at(0).value_or("") : "";
    }

    ProtectedPlace place_;
    std::unique_ptr<sql::Session> shell_ = place_.connect();
    TempFolder folder_;
};

TEST_P(FenceCounter, EveryAcknowledgedIncrementIsThereUnderHoldfastAssert) {
    const Sums sums = run("asserted", scaled(1));
    EXPECT_GE(sums.counted, sums.acknowledged);
    EXPECT_LE(sums.counted, sums.acknowledged + sums.unknown);
}

TEST_P(FenceCounter, EveryAcknowledgedIncrementIsThereThroughTheLibrary) {
    const Sums sums = run("fenced", scaled(1));
    EXPECT_GE(sums.counted, sums.acknowledged);
    EXPECT_LE(sums.counted, sums.acknowledged + sums.unknown);
}

TEST_P(FenceCounter, WithoutTheFenceUpdatesAreLost) {
    const Sums sums = run("unguarded", scaled(1));
    EXPECT_LT(sums.counted, sums.acknowledged) << "the pauses do not bite, so the other tests prove nothing";
}

INSTANTIATE_TEST_SUITE_P(Databases, FenceCounter,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& dialect) { return name_of(dialect.param); });

}  // namespace
}  // namespace holdfast::tests
