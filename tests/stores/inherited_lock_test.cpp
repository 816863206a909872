// Goal: the short locks on files that a store takes go with the process that took them, also when a command that it has
// started lives on; and they do not go before. Such a lock belongs to the open file: a process that inherits the file
// keeps it locked, and closing another open file of the same name frees nothing. Method: a process is killed inside the
// critical section, and leaves a command behind; or it opens and closes there what it has locked.
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

/// Whether somebody else than this open file holds the lock on it, by another way than ours.
bool is_locked(const base::Fd& file) {
    struct flock asked{};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    fcntl(file.get(), F_OFD_GETLK, &asked);
    return asked.l_type != F_UNLCK;
}

bool is_locked(const fs::path& file) { return is_locked(opened(file)); }

/// Opens the file before somebody locks it, and closes it afterwards.
void await_locked(const fs::path& file) {
    const base::Fd fd = opened(file);
    for (const Deadline end = soon(); !is_locked(fd); std::this_thread::yield())
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

class LockOnFile : public testing::Test {
protected:
    [[nodiscard]] fs::path database() const { return folder_.path() / "locks.db"; }
    [[nodiscard]] std::string sqlite_url() const { return "sqlite:" + database().string() + "?sync=off"; }
    [[nodiscard]] fs::path gate() const { return database().string() + "-gate"; }

    [[nodiscard]] std::string file_url() const { return "file:" + folder_.path().string() + "/store?sync=off"; }
    [[nodiscard]] fs::path guard_of(std::string_view name) const {
        return folder_.path() / "store" / "locks" / stores::file::folder_name(lock(name)) / "guard";
    }
    /// So that the locks `a` and `b` have guards.
    void use_files() const {
        const auto store = must(open_store(file_url()));
        for (const char* name : {"a", "b"}) {
            const Acquire used = by_alice(lock(name));
            must(store->apply_one(used, soon()));
            must(store->apply_one(release(used), soon()));
        }
    }
    /// Has the first lock's guard, and stays there as long as the second's is taken.
    void wait_inside_files() const {
        static_cast<void>(
            must(open_store(file_url()))
                ->apply(std::vector<Request>{by_alice(lock("a")), by_alice(lock("b"))}, Deadline::never()));
    }

    const TempFolder folder_;
};

class InheritedLock : public LockOnFile {};
class LockOfAClosedFile : public LockOnFile {};

TEST_F(InheritedLock, OfASqliteStoreEndsWithTheProcessThatIsKilledInTheGate) {
    must(must(open_store(sqlite_url()))->apply({}, soon()));
    Process killed = Process::fork([&] {
        const auto store = must(open_store(sqlite_url()));
        must(store->apply({}, soon()));
        start_command();
        print_now("ready\n");
        // Goes into the gate and waits there, as long as another program writes.
        while (true) static_cast<void>(store->apply_one(by_alice(lock("x")), Deadline::never()));
        return 0;
    });
    ASSERT_EQ(killed.read_line(), "ready");
    ByHand other(database());
    ASSERT_EQ(other.execute("PRAGMA busy_timeout = 20000; BEGIN IMMEDIATE"), SQLITE_OK);
    kill_inside(killed, gate());
    ASSERT_EQ(other.execute("ROLLBACK"), SQLITE_OK);
    EXPECT_THAT(must(open_store(sqlite_url()))->apply_one(by_bob(lock("y")), soon()), Granted());
}

TEST_F(InheritedLock, OfAFileStoreEndsWithTheProcessThatIsKilledInASection) {
    use_files();
    const base::Fd second = opened(guard_of("b"));
    std::optional guard(must(base::FileLock::take(second.get(), host_clock(), soon())));
    Process killed = Process::fork([&] {
        std::jthread inside([&] { wait_inside_files(); });
        await_locked(guard_of("a"));
        start_command();
        print_now("ready\n");
        inside.join();
        return 0;
    });
    ASSERT_EQ(killed.read_line(), "ready");
    kill_inside(killed, guard_of("a"));
    guard.reset();
    EXPECT_THAT(must(open_store(file_url()))->apply_one(by_bob(lock("a")), soon()), Granted());
}

// A POSIX lock, as SQLite's own are, is dropped when its process closes any descriptor of the file: a backup in a
// thread would let another process in. Here `await_locked` closes what was locked in the meantime.
TEST_F(LockOfAClosedFile, OfASqliteStoreKeepsOthersOut) {
    Process inside = Process::fork([&] {
        const auto store = must(open_store(sqlite_url()));
        must(store->apply({}, soon()));
        // A process that changes a lock now stays in the gate, as long as another program writes.
        ByHand other(database());
        if (other.execute("BEGIN IMMEDIATE") != SQLITE_OK) return 1;
        std::thread changing([&] {
            while (true) static_cast<void>(store->apply_one(by_alice(lock("x")), Deadline::never()));
        });
        await_locked(gate());
        print_now("ready\n");
        changing.join();
        return 0;
    });
    ASSERT_EQ(inside.read_line(), "ready");
    EXPECT_TRUE(is_locked(gate()));
}

TEST_F(LockOfAClosedFile, OfAFileStoreKeepsOthersOut) {
    use_files();
    const base::Fd second = opened(guard_of("b"));
    const auto guard = must(base::FileLock::take(second.get(), host_clock(), soon()));
    Process inside = Process::fork([&] {
        std::thread changing([&] { wait_inside_files(); });
        await_locked(guard_of("a"));
        print_now("ready\n");
        changing.join();
        return 0;
    });
    ASSERT_EQ(inside.read_line(), "ready");
    EXPECT_TRUE(is_locked(guard_of("a")));
}

}  // namespace
}  // namespace holdfast::tests
