// Goal: a process that is stopped in the middle of a change does not take others with it. Method: strace
// stops the program when it is about to sync its write; others then ask with a short deadline.
#include "process/shared_store.hpp"
#include "process/traced.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// Waits until strace has written that the program was stopped, and returns the pid to continue.
pid_t wait_until_stopped(const std::filesystem::path& log) {
    const std::regex stopped(R"((\d+) +--- stopped by SIGSTOP ---)");
    for (int tries = 0; tries < 3000; ++tries) {
        std::ostringstream text;
        text << std::ifstream(log).rdbuf();
        std::smatch match;
        const std::string all = text.str();
        if (std::regex_search(all, match, stopped)) return static_cast<pid_t>(std::stol(match[1]));
        std::this_thread::sleep_for(10ms);
    }
    throw std::runtime_error("the program was never stopped");
}

class StoppedOwner : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (!can_trace()) GTEST_SKIP() << not_here << "no process may be traced";
    }
    [[nodiscard]] std::string url() const { return url_in(folder_.path(), GetParam()); }
    [[nodiscard]] Call call() const { return {"acquire", url(), lock("x"), as_}; }
    [[nodiscard]] const LockId& owner() const { return as_.lock_id; }

    /// Starts the program on `x`, which stops at the first sync of its change.
    [[nodiscard]] Process start_and_stop() {
        must(open_shared(url())->apply_one(by_alice(lock("y")), patient()));
        Process process = start_injected(call(), first_sync(), "signal=STOP", log());
        stopped_ = wait_until_stopped(log());
        return process;
    }
    /// The program itself, below strace.
    void send_to_stopped(int signal) const { kill(stopped_, signal); }

    /// Another process asks for `x` with a short deadline. It is killed by its alarm if it does not come back.
    [[nodiscard]] std::string ask_from_outside() const {
        Process asker = Process::fork([&] {
            alarm(60);
            const auto store = open_shared(url());
            must(store->inspect(lock("y"), Deadline::in(host_clock(), 500ms)));
            const Reply reply = store->apply_one(by_bob(lock("x")), Deadline::in(host_clock(), 500ms));
            print_now(reply ? "granted" : std::string(row_of(reply.error().code).name));
            return 0;
        });
        std::string said = asker.read_all();
        EXPECT_EQ(asker.wait(), Exit{.status = 0}) << "it hung, or could not even read";
        return said;
    }

private:
    [[nodiscard]] std::filesystem::path log() const { return logs_.path() / "trace"; }

    [[nodiscard]] NthCall first_sync() const {
        const Call rehearsal{"acquire", url(), lock("rehearsal"), Credentials::random()};
        for (const NthCall& at : calls_on(folder_.path(), rehearsal))
            if (at.syscall == "fsync" || at.syscall == "fdatasync") return at;
        throw std::runtime_error(GetParam() + " syncs nothing");
    }

    TempFolder folder_;
    TempFolder logs_;
    Credentials as_ = Credentials::random();
    pid_t stopped_ = -1;
};

TEST_P(StoppedOwner, OthersGiveUpAtTheirDeadlineAndTheOwnerGoesOnLater) {
    Process process = start_and_stop();
    EXPECT_EQ(ask_from_outside(), "E_STORE_UNAVAILABLE") << GetParam();

    send_to_stopped(SIGCONT);

    const auto answer = parse_line(process.read_all());
    EXPECT_EQ(process.wait(), Exit{.status = 0});
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->granted);
    const LockStatus status = sound_status(*open_shared(url()), lock("x"));
    ASSERT_TRUE(status.lease);
    EXPECT_EQ(status.lease->lock_id, owner());
}

TEST_P(StoppedOwner, OthersGoOnAsSoonAsTheOwnerIsKilled) {
    Process process = start_and_stop();

    send_to_stopped(SIGKILL);

    EXPECT_FALSE(parse_line(process.read_all()));
    EXPECT_EQ(process.wait(), Exit{.signal = SIGKILL});
    EXPECT_THAT(ask_from_outside(), testing::AnyOf("granted", "E_LOCK_CONFLICT")) << GetParam();
    (void)sound_status(*open_shared(url()), lock("x"));
}

INSTANTIATE_TEST_SUITE_P(Stores, StoppedOwner, testing::ValuesIn(file_schemes()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
