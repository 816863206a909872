// Goal: real processes are served in the order of their tickets; a waiter that dies in the queue delays the others no
// longer than its ticket lives, and one that leaves does not delay them at all. Method: waiters that are processes of
// their own, each queued before the next one starts; the audit log tells which waiter was granted the lock, and when.
#include "client/waiter.hpp"
#include "process/shared_store.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class Line : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { must(store()->apply_one(first_, patient())); }

    /// A process that waits for the lock, is granted it, and gives it back.
    [[nodiscard]] Process waiter(const std::string& who, std::chrono::milliseconds ticket = 1min) {
        const std::uint64_t before = status().waiters;
        Process process = Process::fork([this, who, ticket] {
            const auto own = store();
            const Acquire wanted = queued(by(who, name_, 1h), ticket);
            must(client::acquire_in_turn(*own, wanted, host_clock(), {}));
            must(own->apply_one(release(wanted), patient()));
            return 0;
        });
        while (status().waiters == before) std::this_thread::yield();
        return process;
    }
    /// One that runs the command; it ends at once when it is told to.
    [[nodiscard]] Process command(std::vector<std::string> words) {
        const std::uint64_t before = status().waiters;
        words.insert(words.begin(), HOLDFAST_PROGRAM);
        words.insert(words.end(), {"--store", url(), "--wait", "10m", "--quiet", name_.text()});
        if (words[1] == "run") words.insert(words.end(), {"--", "true"});
        Process process = Process::run(words);
        while (status().waiters == before) std::this_thread::yield();
        return process;
    }

    [[nodiscard]] LockStatus status() { return must(store()->inspect(name_, patient())); }
    void let_go() { must(store()->apply_one(release(first_), patient())); }

    /// The waiters that were granted the lock after the first holder, in order.
    [[nodiscard]] std::vector<std::string> served() {
        std::vector<std::string> holders;
        for (const AuditEvent& event : must(store()->history({.name = name_}, patient())))
            if (event.kind == EventKind::acquired && event.seq > 1) holders.push_back(event.holder.text);
        return holders;
    }

    TempFolder folder_;
    [[nodiscard]] std::string url() const { return url_in(folder_.path(), GetParam()); }
    /// Opened for each use, because a connection of SQLite must not be there when a child is forked.
    [[nodiscard]] std::unique_ptr<Store> store() const { return open_shared(url()); }
    const LockName name_ = lock("deploy/web");
    const Acquire first_ = by_alice(name_, 1h);
};

class LineInAServer : public Line {};

TEST_P(Line, EightProcessesAreServedInTheOrderOfTheirTickets) {
    std::vector<Process> waiters;
    std::vector<std::string> expected;
    for (int i = 0; i < 8; ++i) {
        expected.push_back("waiter " + std::to_string(i));
        waiters.push_back(waiter(expected.back()));
    }
    let_go();
    for (Process& waiting : waiters) EXPECT_EQ(waiting.wait(), Exit{.status = 0});
    EXPECT_EQ(served(), expected);
}

// On a store in files it is skipped at once: dead_process_test.
TEST_P(LineInAServer, AKilledWaiterIsSkippedWhenItsTicketHasRunOut) {
    Process victim = waiter("victim", 2s);
    Process next = waiter("next");
    victim.send(SIGKILL);
    EXPECT_EQ(victim.wait(), Exit{.signal = SIGKILL});
    const Instant killed = host_clock().wall();
    let_go();
    EXPECT_EQ(next.wait(), Exit{.status = 0});
    EXPECT_THAT(served(), testing::ElementsAre("victim")) << "nobody could know that it was dead";
    const auto events = must(store()->history({.name = name_}, patient()));
    const auto taken = std::ranges::find(events, EventKind::stolen, &AuditEvent::kind);
    ASSERT_NE(taken, events.end());
    EXPECT_EQ(taken->holder.text, "next");
    fmt::print("{}: a waiter with a ticket of 2 s was skipped {} after it was killed\n", GetParam(),
               std::chrono::round<std::chrono::milliseconds>(taken->at - killed).count());
}

// Their tickets live for several seconds more, and nobody may have to wait for that.
TEST_P(Line, AWaiterThatIsToldToStopLeavesTheLineAtOnce) {
    for (const std::string verb : {"run", "acquire"}) {
        for (const int signal : {SIGTERM, SIGINT}) {
            Process leaving = command({verb});
            leaving.send(signal);
            EXPECT_EQ(leaving.wait(), Exit{.status = 128 + signal}) << verb;
            EXPECT_EQ(status().waiters, 0U) << verb;
        }
    }
}

TEST_P(Line, AWaiterThatLeavesWithoutKnowingThatTheLockIsItsOwnHandsItOn) {
    // A stopped process is first, so it holds the lock and does not know it until it goes. Not `run`, which is two
    // processes: stopping the one that was started does not stop the waiter.
    Process leaving = command({"acquire"});
    Process next = waiter("next");
    leaving.send(SIGSTOP);
    let_go();
    EXPECT_EQ(status().state, LockState::held);
    leaving.send(SIGTERM);
    leaving.send(SIGCONT);
    EXPECT_EQ(next.wait(), Exit{.status = 0});
    EXPECT_THAT(served(), testing::Contains("next"));
}

INSTANTIATE_TEST_SUITE_P(Stores, LineInAServer, testing::ValuesIn(server_schemes()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Stores, Line, testing::ValuesIn(shared_schemes()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
