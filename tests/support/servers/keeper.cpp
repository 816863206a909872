// Keeps the servers that a whole test run shares: `keeper start FOLDER` starts them and writes their ports into
// FOLDER; `keeper stop FOLDER` ends them. They end by themselves when the test run that started them is gone. With
// `keeper start FOLDER KIND…` only those are started.
#include "base/fd.hpp"
#include "support/servers/kinds.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <poll.h>
#include <stdexcept>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;

base::Fd watch_process(pid_t pid) { return base::Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

/// Sleeps until `owner` is gone or somebody sends SIGTERM.
void wait_for_end(pid_t owner, int signals) {
    const base::Fd process = watch_process(owner);
    std::array waiting{pollfd{process.get(), POLLIN, 0}, pollfd{signals, POLLIN, 0}};
    if (process) poll(waiting.data(), waiting.size(), -1);
}

/// `ready` stays open until the caller has told why it failed: its end is what the test run waits for.
int keep(const fs::path& folder, const std::vector<std::string>& kinds, pid_t owner, base::Fd& ready) {
    setsid();
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, nullptr);
    const base::Fd signals(signalfd(-1, &ending, SFD_CLOEXEC));

    std::vector<std::unique_ptr<Server>> servers;
    for (const std::string& kind : kinds) {
        servers.push_back(start_server(kind));
        std::ofstream(folder / kind) << servers.back()->port() << '\n';
    }
    // Once more, when all are there: one may have ended while the next one started, or a stranger may have answered.
    for (std::size_t i = 0; i < kinds.size(); ++i)
        if (!servers[i]->listens()) throw std::runtime_error(kinds[i] + " is not up any more");
    std::ofstream(folder / "keeper") << getpid() << '\n';
    if (write(ready.get(), "+", 1) != 1) return 1;
    ready.reset();
    wait_for_end(owner, signals.get());
    servers.clear();
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    return 0;
}

int start(const fs::path& folder, const std::vector<std::string>& kinds) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return 1;
    const base::Fd listen(ends[0]);
    base::Fd tell(ends[1]);
    const pid_t owner = getppid();
    const pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
        try {
            // What the test run waits for must not stay open in a process that goes on.
            const int log = open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            dup2(log, 1);
            dup2(log, 2);
            _exit(keep(folder, kinds, owner, tell));
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            _exit(1);
        }
    }
    tell.reset();
    char answer = 0;
    if (read(listen.get(), &answer, 1) == 1) return 0;
    std::ifstream log(folder / "log");
    std::fprintf(stderr, "the servers did not start:\n%s\n",
                 std::string(std::istreambuf_iterator<char>(log), {}).c_str());
    return 1;
}

int stop(const fs::path& folder) {
    pid_t pid = 0;
    if (!(std::ifstream(folder / "keeper") >> pid)) return 0;
    const base::Fd keeper = watch_process(pid);
    if (!keeper) return 0;
    kill(pid, SIGTERM);
    pollfd gone{keeper.get(), POLLIN, 0};
    return poll(&gone, 1, 30'000) == 1 ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::tests

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments, arguments + count);
    const std::vector<std::string> kinds(words.begin() + std::min(count, 3), words.end());
    if (count >= 3 && words[1] == "start")
        return holdfast::tests::start(words[2], kinds.empty() ? holdfast::tests::server_kinds() : kinds);
    if (count == 3 && words[1] == "stop") return holdfast::tests::stop(words[2]);
    std::fprintf(stderr, "usage: keeper start|stop FOLDER [KIND…]\n");
    return 64;
}
