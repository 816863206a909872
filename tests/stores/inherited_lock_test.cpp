// Goal: the short locks on files that a store takes go with the process that took them, also when a command that it has
// started lives on. Such a lock belongs to the open file, and whoever inherits that keeps it locked.
// Method: a process is killed inside the critical section, and leaves a command behind.
#include "base/fd.hpp"
#include "base/file_lock.hpp"
#include "holdfast/open.hpp"
#include "stores/file/name_encoding.hpp"
#include "stores/sqlite_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/process.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Deadline soon() { return Deadline::in(host_clock(), 20s); }

base::Fd opened(const fs::path& file) {
    base::Fd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) throw std::runtime_error("cannot open " + file.string());
    return fd;
}

/// Whether somebody holds the lock on `file`, by another way than ours.
bool is_locked(const fs::path& file) {
    const base::Fd fd = opened(file);
    struct flock asked{};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    fcntl(fd.get(), F_OFD_GETLK, &asked);
    return asked.l_type != F_UNLCK;
}

void await_locked(const fs::path& file) {
    for (const Deadline end = soon(); !is_locked(file); std::this_thread::yield())
        if (end.passed(host_clock())) throw std::runtime_error("nobody locks " + file.string());
}

/// A command that lives until our input ends, which is when the test lets go of us. It inherits what is not closed.
void start_command() {
    pid_t pid = -1;
    std::string program = "/bin/cat";
    char* arguments[] = {program.data(), nullptr};
    if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environ) != 0) std::abort();
}

/// Kills it in a moment in which `file` is locked.
void kill_inside(Process& process, const fs::path& file) {
    for (const Deadline end = soon();; process.send(SIGCONT)) {
        if (end.passed(host_clock())) throw std::runtime_error("it never locks " + file.string());
        process.send(SIGSTOP);
        siginfo_t stopped{};
        waitid(P_PID, static_cast<id_t>(process.pid()), &stopped, WSTOPPED | WNOWAIT);
        if (is_locked(file)) break;
    }
    process.send(SIGKILL);
    process.wait();
}

class InheritedLock : public testing::Test {
protected:
    const TempFolder folder_;
};

TEST_F(InheritedLock, OfASqliteStoreEndsWithTheProcessThatIsKilledInTheGate) {
    const fs::path file = folder_.path() / "locks.db";
    const std::string url = "sqlite:" + file.string() + "?sync=off";
    must(must(open_store(url))->apply({}, soon()));
    Process killed = Process::fork([&] {
        const auto store = must(open_store(url));
        must(store->apply({}, soon()));
        start_command();
        print_now("ready\n");
        // Goes into the gate and waits there, as long as another program writes.
        while (true) static_cast<void>(store->apply_one(by_alice(lock("x")), Deadline::never()));
        return 0;
    });
    ASSERT_EQ(killed.read_line(), "ready");
    ByHand other(file);
    ASSERT_EQ(other.execute("PRAGMA busy_timeout = 20000; BEGIN IMMEDIATE"), SQLITE_OK);
    kill_inside(killed, file.string() + "-gate");
    ASSERT_EQ(other.execute("ROLLBACK"), SQLITE_OK);
    EXPECT_THAT(must(open_store(url))->apply_one(by_bob(lock("y")), soon()), Granted());
}

TEST_F(InheritedLock, OfAFileStoreEndsWithTheProcessThatIsKilledInASection) {
    const std::string url = "file:" + folder_.path().string() + "/store?sync=off";
    const auto store = must(open_store(url));
    for (const char* name : {"a", "b"}) {
        const Acquire used = by_alice(lock(name));
        must(store->apply_one(used, soon()));
        must(store->apply_one(release(used), soon()));
    }
    const auto guard_of = [&](std::string_view name) {
        return folder_.path() / "store" / "locks" / stores::file::folder_name(lock(name)) / "guard";
    };
    const base::Fd second = opened(guard_of("b"));
    std::optional guard(must(base::FileLock::take(second.get(), host_clock(), soon())));
    Process killed = Process::fork([&] {
        // Has the first lock's guard and waits for the second's, which the test holds.
        std::jthread inside([&] {
            static_cast<void>(
                must(open_store(url))
                    ->apply(std::vector<Request>{by_alice(lock("a")), by_alice(lock("b"))}, Deadline::never()));
        });
        await_locked(guard_of("a"));
        start_command();
        print_now("ready\n");
        inside.join();
        return 0;
    });
    ASSERT_EQ(killed.read_line(), "ready");
    kill_inside(killed, guard_of("a"));
    guard.reset();
    EXPECT_THAT(store->apply_one(by_bob(lock("a")), soon()), Granted());
}

}  // namespace
}  // namespace holdfast::tests
