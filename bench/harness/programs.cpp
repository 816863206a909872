#include "harness/programs.hpp"

#include "harness/comparison.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::bench {
namespace {

/// Standard output goes to `out`, a descriptor, or nowhere.
pid_t start_with(const std::vector<std::string>& command, int out) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (out < 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) give_up("cannot run " + command.front());
    return pid;
}

}  // namespace

void give_up(const std::string& why) {
    fmt::print(stderr, "\nbench: {}\n", why);
    std::exit(1);
}

pid_t start(const std::vector<std::string>& command) { return start_with(command, -1); }

void expect_success(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) give_up(fmt::format("a program ended with {}", status));
}

double time_of(const std::vector<std::string>& command, int times) {
    std::vector<double> took;
    for (int i = 0; i < times; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        expect_success(start(command));
        took.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    return quantile(std::move(took), 0.5);
}

double peak_memory_of(const std::vector<std::string>& command) {
    const pid_t pid = start(command);
    int status = 0;
    rusage used{};
    if (wait4(pid, &status, 0, &used) != pid || status != 0) give_up(fmt::format("a program ended with {}", status));
    return static_cast<double>(used.ru_maxrss) / 1024;
}

std::string output_of(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) give_up("cannot make a pipe");
    const pid_t pid = start_with(command, ends[1]);
    close(ends[1]);
    std::string output;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0;)
        output.append(buffer.data(), static_cast<std::size_t>(count));
    close(ends[0]);
    expect_success(pid);
    return output;
}

pid_t fork_to(const std::function<void()>& work) {
    const pid_t pid = fork();
    if (pid < 0) give_up("cannot fork");
    if (pid > 0) return pid;
    work();
    _exit(0);
}

}  // namespace holdfast::bench
