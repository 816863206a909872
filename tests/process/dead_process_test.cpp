// Goal: on a store in files a waiter leaves the queue when its process has died, and a lease with session=on is over
// then; and neither before, whatever the process does or inherits. Method: processes that are killed, stopped, forked,
// or in a pid namespace of their own. Times are so long that a test which has to wait for one of them does not end.
#include "client/waiter.hpp"
#include "process/shared_store.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// `/bin/cat`, which lives until our input ends. It inherits what is not closed by exec.
void start_command() {
    pid_t pid = -1;
    std::string program = "/bin/cat";
    char* arguments[] = {program.data(), nullptr};
    if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environ) != 0) std::abort();
}

/// A child with all that its parent has open. It lives until the parent's input ends.
void fork_without_exec() {
    if (fork() != 0) return;
    wait_for_end_of_input();
    _exit(0);
}

std::string held_by(const LockStatus& status) { return status.lease ? status.lease->holder.text : "nobody"; }

class DeadProcess : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] std::string url(const std::string& parameters = "?sync=off") const {
        return url_in(folder_.path(), GetParam()) + parameters;
    }
    [[nodiscard]] std::string session_url() const { return url("?sync=off&session=on"); }
    [[nodiscard]] std::filesystem::path presence() const {
        return folder_.path() / (GetParam() == "file" ? "store/presence" : "store-presence");
    }
    /// Opened for each use, because a connection of SQLite must not be there when a child is forked.
    [[nodiscard]] Reply apply(const Request& request) const {
        return open_shared(url())->apply_one(request, patient());
    }
    [[nodiscard]] LockStatus status() const { return must(open_shared(url())->inspect(name_, patient())); }

    /// A process that stands in line for an hour if nothing happens, is granted the lock, and gives it back. `first` is
    /// run when it has its place.
    [[nodiscard]] Process waiter(
        const std::string& who, const std::function<void()>& first = [] {}, std::chrono::milliseconds ticket = 1h) {
        Process process = Process::fork([&] { return stand_in_line(who, ticket, first, [] {}); });
        EXPECT_EQ(process.read_line(), "in line");
        return process;
    }
    /// A process with a place in line that does nothing more until its input ends, so that it can be stopped without
    /// being in the midst of a step, which would stop everybody.
    [[nodiscard]] Process idle_waiter(const std::string& who) {
        Process process = Process::fork([&] { return stand_in_line(who, 1h, [] {}, wait_for_end_of_input); });
        EXPECT_EQ(process.read_line(), "in line");
        return process;
    }
    /// A process that holds the lock for an hour, bound to itself. `then` is run when it has it.
    [[nodiscard]] Process holder(const std::function<void(Store&)>& then = [](Store&) {}) {
        Process process = Process::fork([&] {
            const auto own = open_shared(session_url());
            must(own->apply_one(alice_, patient()));
            then(*own);
            print_now("holding\n");
            wait_for_end_of_input();
            return 0;
        });
        EXPECT_EQ(process.read_line(), "holding");
        return process;
    }
    int stand_in_line(const std::string& who, std::chrono::milliseconds ticket, const std::function<void()>& at_once,
                      const std::function<void()>& before_it_asks) const {
        const auto own = open_shared(url());
        const Acquire wanted = queued(by(who, name_, 1h), ticket);
        EXPECT_THAT(own->apply_one(wanted, patient()), RefusedWith(Errc::lock_conflict));
        at_once();
        print_now("in line\n");
        before_it_asks();
        must(client::acquire_in_turn(*own, wanted, host_clock(), {}));
        must(own->apply_one(release(wanted), patient()));
        return 0;
    }
    static void kill_now(Process& process) {
        process.send(SIGKILL);
        EXPECT_EQ(process.wait(), Exit{.signal = SIGKILL});
    }

    /// The holders after the first one, in order.
    [[nodiscard]] std::vector<std::string> served() const {
        std::vector<std::string> holders;
        for (const AuditEvent& event : must(open_shared(url())->history({.name = name_}, patient())))
            if (event.seq > 1 && (event.kind == EventKind::acquired || event.kind == EventKind::stolen))
                holders.push_back(event.holder.text);
        return holders;
    }
    void expect_served(Process& process) const { EXPECT_EQ(process.wait(), Exit{.status = 0}); }
    [[nodiscard]] std::vector<std::string> links() const {
        std::vector<std::string> names;
        if (!std::filesystem::exists(presence())) return names;
        for (const auto& entry : std::filesystem::directory_iterator(presence()))
            names.push_back(entry.path().extension().string());
        return names;
    }

    TempFolder folder_;
    const LockName name_ = lock("deploy/web");
    const Acquire alice_ = by_alice(name_, 1h);
};

class DeadWaiter : public DeadProcess {
protected:
    void SetUp() override { must(apply(alice_)); }
    void let_go() { must(apply(release(alice_))); }
};
class DeadHolder : public DeadProcess {};

TEST_P(DeadWaiter, IsSkippedWhenTheLockIsGivenBack) {
    Process first = waiter("first");
    Process second = waiter("second");
    Process third = waiter("third");
    kill_now(first);
    kill_now(second);
    EXPECT_EQ(status().waiters, 1U);
    let_go();
    expect_served(third);
    EXPECT_THAT(served(), ElementsAre("third"));
}

TEST_P(DeadWaiter, IsSkippedByTheNextOneWhenTheLockIsFreeAlready) {
    Process first = idle_waiter("first");
    Process second = waiter("second");
    // Not handed on: an operator has to break it.
    must(apply(Break{name_, alice_.as.lock_id, "root"}));
    EXPECT_EQ(status().waiters, 2U);
    kill_now(first);
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("second"));
}

TEST_P(DeadWaiter, StandsInNobodysWayWhoDoesNotWait) {
    Process first = waiter("first");
    kill_now(first);
    must(apply(Break{name_, alice_.as.lock_id, "root"}));
    EXPECT_THAT(apply(by_bob(name_)), Granted());
}

TEST_P(DeadWaiter, IsNotOneThatADaemonAskedFor) {
    Process daemon = Process::fork([&] {
        const auto own = open_shared(url());
        own->serve_others();
        EXPECT_THAT(own->apply_one(queued(by("client", name_, 1h), 1h), patient()), RefusedWith(Errc::lock_conflict));
        print_now("in line\n");
        wait_for_end_of_input();
        return 0;
    });
    EXPECT_EQ(daemon.read_line(), "in line");
    kill_now(daemon);
    EXPECT_EQ(status().waiters, 1U);
    let_go();
    EXPECT_EQ(held_by(status()), "client");
}

TEST_P(DeadWaiter, IsNotOneThatIsStopped) {
    Process first = idle_waiter("first");
    Process second = waiter("second");
    first.send(SIGSTOP);
    let_go();
    EXPECT_EQ(held_by(status()), "first");
    first.send(SIGCONT);
    first.close_input();
    expect_served(first);
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("first", "second"));
}

TEST_P(DeadWaiter, IsSkippedAlthoughACommandThatItHasStartedLivesOn) {
    Process first = waiter("first", start_command);
    Process second = waiter("second");
    kill_now(first);
    let_go();
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("second"));
}

// Such a child may be the one that goes on. So the ticket decides, as it does for a waiter on another host.
TEST_P(DeadWaiter, KeepsItsPlaceUntilItsTicketEndsIfAForkedChildLivesOn) {
    Process first = waiter("first", fork_without_exec, 2s);
    Process second = waiter("second");
    kill_now(first);
    let_go();
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("first", "second"));
}

TEST_P(DeadWaiter, IsNotOneWhoseForkedChildHasEnded) {
    Process first = waiter("first", [] {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
    });
    Process second = waiter("second");
    let_go();
    expect_served(first);
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("first", "second"));
}

TEST_P(DeadWaiter, IsSeenFromAnotherPidNamespace) {
    Process first = waiter("first");
    Process second = Process::fork([&] {
        // Root needs no user namespace, in which files would seem to belong to others.
        if (unshare(CLONE_NEWPID) != 0) {
            print_now("not here\n");
            return 0;
        }
        const pid_t inside = fork();
        if (inside == 0) {
            const auto own = open_shared(url());
            const Acquire wanted = queued(by("second", name_, 1h), 1h);
            EXPECT_THAT(own->apply_one(wanted, patient()), RefusedWith(Errc::lock_conflict));
            print_now("in line\n");
            must(client::acquire_in_turn(*own, wanted, host_clock(), {}));
            must(own->apply_one(release(wanted), patient()));
            _exit(0);
        }
        int ending = 0;
        waitpid(inside, &ending, 0);
        return WEXITSTATUS(ending);
    });
    if (second.read_line() != "in line") GTEST_SKIP() << not_here << "no pid namespace may be made";
    // Seen out of the namespace to be alive, and into it to be dead.
    EXPECT_EQ(status().waiters, 2U);
    kill_now(first);
    let_go();
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("second"));
}

TEST_P(DeadWaiter, LeavesNothingBehindWhenItWasSkipped) {
    Process first = waiter("first");
    Process second = waiter("second");
    kill_now(first);
    let_go();
    expect_served(second);
    // The killed one has left its own name, which a later waiter removes.
    EXPECT_THAT(links(), ElementsAre(".process"));
    must(apply(by_alice(name_, 1h)));
    Process third = waiter("third");
    EXPECT_THAT(links(), testing::UnorderedElementsAre(".process", ".ticket"));
}

TEST_P(DeadHolder, FreesItsLockAtOnce) {
    Process first = holder();
    EXPECT_THAT(apply(by_bob(name_)), RefusedWith(Errc::lock_conflict));
    const FencingToken token = status().token;
    kill_now(first);
    const Outcome taken = must(apply(by_bob(name_)));
    EXPECT_GT(taken.lock.token, token);
    ASSERT_TRUE(taken.stolen_from);
    EXPECT_EQ(taken.stolen_from->lock_id, alice_.as.lock_id);
    const auto events = must(open_shared(url())->history({.name = name_}, patient()));
    EXPECT_EQ(events.back().kind, EventKind::stolen);
    EXPECT_EQ(events.back().details.at("from_holder"), "alice");
}

TEST_P(DeadHolder, FreesItsLockForTheFirstInLineAtOnce) {
    Process first = holder();
    Process second = waiter("second");
    kill_now(first);
    expect_served(second);
    EXPECT_THAT(served(), ElementsAre("second"));
}

TEST_P(DeadHolder, IsNotOneThatIsStopped) {
    Process first = holder();
    first.send(SIGSTOP);
    EXPECT_THAT(apply(by_bob(name_)), RefusedWith(Errc::lock_conflict));
    first.send(SIGCONT);
    EXPECT_THAT(apply(renewal(alice_)), Granted());
}

TEST_P(DeadHolder, WithoutASessionKeepsItsLeaseUntilItsEnd) {
    Process first = Process::fork([&] {
        must(apply(alice_));
        // Bound tickets of others, and a session of another lease, change nothing.
        must(open_shared(session_url())->apply_one(by_alice(lock("other"), 1h), patient()));
        return 0;
    });
    expect_served(first);
    EXPECT_THAT(apply(by_bob(name_)), RefusedWith(Errc::lock_conflict));
}

TEST_P(DeadHolder, KeepsItsLeaseAsLongAsSomebodyHasItsDescriptor) {
    Process first = holder([](Store& own) {
        const auto copy = own.duplicate_session();
        ASSERT_TRUE(copy);
        fcntl(*copy, F_SETFD, 0);
        start_command();
    });
    kill(first.pid(), SIGKILL);
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(first.pid()), &ended, WEXITED | WNOWAIT);
    EXPECT_THAT(apply(by_bob(name_)), RefusedWith(Errc::lock_conflict));
    first.close_input();
    Reply taken = apply(by_bob(name_));
    for (const Deadline patience = patient(); !taken && !patience.passed(host_clock());) taken = apply(by_bob(name_));
    EXPECT_THAT(taken, Granted());
}

TEST_P(DeadHolder, ThatWasHandedTheLockBeforeItDiedFreesItAtOnce) {
    must(apply(alice_));
    const Acquire bob = queued(by_bob(name_, 1h), 1h);
    Process first = Process::fork([&] {
        const auto own = open_shared(session_url());
        EXPECT_THAT(own->apply_one(bob, patient()), RefusedWith(Errc::lock_conflict));
        print_now("in line\n");
        wait_for_end_of_input();
        return 0;
    });
    ASSERT_EQ(first.read_line(), "in line");
    must(apply(release(alice_)));
    EXPECT_EQ(status().lease.value().lock_id, bob.as.lock_id);
    kill_now(first);
    EXPECT_THAT(apply(by_carol(name_)), Granted());
}

TEST_P(DeadHolder, SessionsThatEndedLeaveNothingBehind) {
    {
        const auto own = open_shared(session_url());
        const Acquire bob = by_bob(name_);
        EXPECT_THAT(own->duplicate_session(), testing::Eq(std::nullopt));
        must(own->apply_one(alice_, patient()));
        EXPECT_THAT(links(), testing::UnorderedElementsAre(".process", ".session"));
        EXPECT_THAT(own->apply_one(bob, patient()), RefusedWith(Errc::lock_conflict));
        EXPECT_THAT(own->apply_one(queued(bob), patient()), RefusedWith(Errc::lock_conflict));
        must(own->apply_one(cancel(bob), patient()));
        must(own->apply_one(release(alice_), patient()));
        EXPECT_THAT(links(), ElementsAre(".process"));
    }
    EXPECT_THAT(links(), ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(Stores, DeadWaiter, testing::ValuesIn(file_schemes()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Stores, DeadHolder, testing::ValuesIn(file_schemes()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
